"""One process at a time works on a device, and the engine holds the lock as long as it lives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.models import Device, Host
from analysis.workers.device_lock import device_lock, lock_path
from engine.errors import DeviceBusy
from engine.machine.device_lock import _started
from tests.factories import make_device

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.django_db


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


LEAVES = (
    "import os, subprocess, sys\nfrom pathlib import Path\nfrom engine.machine.device_lock import held\n"
    "with held(Path(sys.argv[1]), 'cpu') as lock:\n"
    "    left = subprocess.Popen(['sleep', '60'], pass_fds=[lock], stdout=subprocess.DEVNULL)\n"
    "    print(left.pid, flush=True)\n    os._exit(0)"
)


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are found through /proc")
def test_what_a_dead_holder_left_is_killed_and_one_that_merely_waits_is_not():
    device = make_device()
    path = lock_path(device)
    left = subprocess.run([sys.executable, "-c", LEAVES, str(path)], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    with path.open() as waiting:
        bystander = subprocess.Popen(["sleep", "60"], pass_fds=[waiting.fileno()])
    with device_lock(device, wait_seconds=5):
        assert _started(int(left.stdout)) is None
        assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_card_has_one_lock_whatever_row_or_host_it_is_known_by():
    card = make_device(device="cuda:0", uuid="GPU-1")
    assert lock_path(card) == lock_path(Device(host=Host(name="elsewhere"), device="cuda:3", uuid="GPU-1"))


def test_a_lock_file_that_was_removed_while_held_is_not_trusted():
    device = make_device()
    with device_lock(device):
        lock_path(device).unlink()
        with device_lock(device) as descriptor:
            assert os.path.samestat(lock_path(device).stat(), os.fstat(descriptor))
