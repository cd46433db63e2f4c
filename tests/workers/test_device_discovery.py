"""Which devices this host has, how they are kept, and how one is chosen."""

import subprocess
from dataclasses import replace
from types import SimpleNamespace

import pytest

from analysis.models import Device, DeviceDay
from analysis.workers import device_discovery
from engine.errors import DeviceUnavailable
from engine.facts.result import DeviceFacts
from engine.text.units import GIB
from tests.factories import make_device
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db

CPU = DeviceFacts("cpu", "cpu", "A CPU", 32 * GIB)
CARD = DeviceFacts("cuda:0", "cuda", "A card", 80 * GIB, uuid="GPU-1", driver="600.1", compute_capability="9.0")


def test_the_engine_is_asked_in_a_child():
    found = device_discovery.devices_find([*FAKE_ENGINE, "ok"])
    assert [(facts.device, facts.name) for facts in found] == [("cpu", "Fake CPU")]


@pytest.mark.parametrize(
    ("command", "expected"),
    [(["false"], "cannot list"), (["/nowhere/python"], "No such file"), (["echo", "no json"], "cannot list")],
)
def test_an_engine_that_cannot_answer_is_an_error_with_its_words(command, expected):
    with pytest.raises(DeviceUnavailable, match=expected):
        device_discovery.devices_find(command)


def test_an_engine_that_hangs_is_an_error(monkeypatch):
    monkeypatch.setattr(device_discovery, "_FIND_SECONDS", 0.05)
    with pytest.raises(DeviceUnavailable, match="timed out"):
        device_discovery.devices_find(["sh", "-c", "exec sleep 5"])


@pytest.mark.parametrize(("found", "offered"), [([CPU], [CPU]), ([CARD, CPU], [CARD]), ([], [])])
def test_the_cpu_is_offered_where_there_is_no_accelerator(found, offered):
    assert device_discovery.accelerators_or_cpu(found) == offered


def test_registering_again_renews_the_facts_and_keeps_what_people_decided():
    [card] = device_discovery.devices_register([CARD])
    Device.objects.update(price_per_hour_usd=2.5, enabled=False)
    [again] = device_discovery.devices_register([replace(CARD, driver="601.0")])
    assert (again.pk, again.driver, again.price_per_hour_usd, again.enabled) == (card.pk, "601.0", 2.5, False)


def test_a_card_keeps_its_row_when_it_moves_to_another_place_or_host(settings):
    [card] = device_discovery.devices_register([CARD])
    settings.HOST_NAME = "elsewhere"
    [moved] = device_discovery.devices_register([replace(CARD, device="cuda:3")])
    assert (moved.pk, moved.device, moved.host.name) == (card.pk, "cuda:3", "elsewhere")


def test_the_cpus_of_two_hosts_are_two_devices(settings):
    [here] = device_discovery.devices_register([CPU])
    settings.HOST_NAME = "elsewhere"
    [there] = device_discovery.devices_register([CPU])
    assert here.pk != there.pk


def test_what_others_hold_of_a_card_is_noted_before_a_run_starts(monkeypatch):
    monkeypatch.setattr(device_discovery, "_card_used_bytes", lambda device: 3 * GIB)
    card, cpu = make_device(device="cuda:0", kind="cuda", uuid="GPU-1"), make_device()
    device_discovery.foreign_use_read(card), device_discovery.foreign_use_read(cpu)
    assert list(Device.objects.order_by("pk").values_list("foreign_used_bytes", flat=True)) == [3 * GIB, None]


def test_a_device_of_this_host_is_registered_when_it_is_first_asked_for(monkeypatch):
    monkeypatch.setattr(device_discovery, "devices_find", lambda: [CPU, CARD])
    assert device_discovery.device_of_this_host("cuda:0").name == "A card"
    assert device_discovery.device_of_this_host("GPU-1").device == "cuda:0"
    with pytest.raises(DeviceUnavailable, match="cuda:1 is not a device of this host; it has cpu, cuda:0 GPU-1"):
        device_discovery.device_of_this_host("cuda:1")


def test_a_refresh_stores_what_is_in_use_and_when(monkeypatch):
    monkeypatch.setattr(device_discovery, "memory_used_bytes", lambda device: 3 * GIB)
    device = make_device()
    device_discovery.devices_refresh([device])
    device.refresh_from_db()
    assert device.memory_used_bytes == 3 * GIB
    assert device.memory_read_at
    assert device.last_seen_at


def test_readings_of_a_day_add_up_to_a_mean_and_the_most(monkeypatch):
    device = make_device()
    for used in (2 * GIB, 6 * GIB, 4 * GIB):
        monkeypatch.setattr(device_discovery, "memory_used_bytes", lambda device, used=used: used)
        device_discovery.devices_refresh([device])
    (day,) = DeviceDay.objects.filter(device=device)
    assert (day.reading_count, day.mean_used_bytes, day.most_used_bytes) == (3, 4 * GIB, 6 * GIB)
    assert day.busy_fraction is None


def test_how_busy_a_card_was_is_a_mean_of_the_readings_in_which_its_driver_told(monkeypatch):
    card = make_device(device="cuda:0", kind="cuda", uuid="GPU-1")
    monkeypatch.setattr(device_discovery, "memory_used_bytes", lambda device: GIB)
    for percent in (100, None, 20):
        monkeypatch.setattr(device_discovery, "busy_percent", lambda device, percent=percent: percent)
        device_discovery.devices_refresh([card])
    (day,) = DeviceDay.objects.filter(device=card)
    assert (day.reading_count, day.busy_reading_count, day.busy_fraction) == (3, 2, 0.6)


def test_a_device_was_last_seen_when_the_slowest_part_of_its_worker_gave_a_sign():
    card = make_device(device="mps", kind="mps")
    device_discovery.devices_refresh([card], silent_seconds=61)
    assert not Device.objects.seen_lately().exists()
    device_discovery.devices_refresh([card])
    assert Device.objects.seen_lately().exists()


def test_what_cannot_be_read_is_unknown_and_not_zero():
    card = make_device(device="mps", kind="mps")
    device_discovery.devices_refresh([card])
    card.refresh_from_db()
    assert (card.memory_used_bytes, card.memory_read_at) == (None, None)
    assert not DeviceDay.objects.exists()
    assert card.last_seen_at


def test_memory_in_use_is_total_minus_available(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:    400 kB\nHugePages_Total: 0\n")
    assert device_discovery.host_used_bytes(meminfo) == 600 * 1024


@pytest.mark.parametrize("text", ["", "MemTotal: 1000 kB\n", "MemTotal: many kB\nMemAvailable: 1 kB\n"])
def test_a_meminfo_that_says_nothing_gives_nothing(tmp_path, text):
    (tmp_path / "meminfo").write_text(text)
    assert device_discovery.host_used_bytes(tmp_path / "meminfo") is None


@pytest.mark.parametrize(("stored", "driver_uuid"), [("GPU-1", "GPU-1"), ("1", "GPU-1"), ("MIG-2", "MIG-2")])
def test_a_card_is_read_by_its_uuid_as_the_driver_writes_it(monkeypatch, stored, driver_uuid):
    monkeypatch.setattr(device_discovery.pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(
        device_discovery.pynvml, "nvmlDeviceGetHandleByUUID", lambda uuid: {driver_uuid: "handle"}[uuid]
    )
    monkeypatch.setattr(
        device_discovery.pynvml, "nvmlDeviceGetMemoryInfo", lambda handle: SimpleNamespace(used=3 * GIB)
    )
    assert device_discovery.memory_used_bytes(Device(device="cuda:0", kind="cuda", uuid=stored)) == 3 * GIB


def test_a_card_without_a_driver_gives_nothing():
    if subprocess.run(["sh", "-c", "command -v nvidia-smi"], capture_output=True).returncode == 0:
        pytest.skip("this host has a driver")
    assert device_discovery.memory_used_bytes(Device(device="cuda:0", kind="cuda", uuid="GPU-1")) is None
