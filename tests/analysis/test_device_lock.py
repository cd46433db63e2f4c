"""One process at a time works on a device, and the engine holds the lock as long as it lives."""

from __future__ import annotations

import subprocess
import sys

import pytest

from analysis.device_lock import DeviceBusy, device_lock
from tests.factories import make_device

pytestmark = pytest.mark.django_db


def test_a_device_that_is_worked_on_is_busy():
    device = make_device()
    with device_lock(device), pytest.raises(DeviceBusy, match="Test CPU"), device_lock(device):
        pass


def test_a_device_is_free_again_afterwards():
    device = make_device()
    with device_lock(device):
        pass
    with device_lock(device) as descriptor:
        assert descriptor > 0


def test_devices_do_not_lock_each_other():
    with device_lock(make_device()), device_lock(make_device(device="cuda:0")) as descriptor:
        assert descriptor > 0


def test_a_child_that_inherited_the_lock_keeps_the_device_busy_until_it_is_dead():
    device = make_device()
    with device_lock(device) as descriptor:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[descriptor])
    with pytest.raises(DeviceBusy), device_lock(device):
        pass
    child.communicate(b"\n")
    with device_lock(device, wait_seconds=5):
        pass
