"""What the driver says of a host's cards, told by a made-up driver: cards with MIG, without, and gone."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import torch

from engine.machine.nvml import (
    devices_with_instances,
    driver_facts,
    full_uuid,
    mig_uuid,
    readings,
    settings,
    visible_uuids,
)
from engine.measurement import device
from engine.text.units import GIB


class NVMLError(Exception):
    """The made-up driver says no."""


class NVMLError_NotFound(NVMLError):
    """There is nothing of that name or in that slot."""


@dataclass
class Card:
    """A card or an instance of one. `slots` is None where MIG is not known, else what its slots hold."""

    uuid: str
    name: str = "NVIDIA H100 80GB HBM3"
    total_bytes: int = 80 * GIB
    slots: list[Card | None] | None = None
    is_cut_up: bool = False
    is_lost: bool = False
    processes: list[SimpleNamespace] = field(default_factory=list)
    drawing: list[SimpleNamespace] = field(default_factory=list)
    used_bytes: int | None = None


class FakeNvml:
    """The functions of pynvml that the engine calls, over made-up cards; a handle is the card itself."""

    NVMLError, NVMLError_NotFound = NVMLError, NVMLError_NotFound
    NVML_DEVICE_MIG_ENABLE, nvmlMemory_v2 = 1, 2

    def __init__(self, *cards: Card, has_driver: bool = True) -> None:
        self.cards, self.has_driver = cards, has_driver
        self.slot_error: NVMLError = NVMLError_NotFound()

    def nvmlInit(self) -> None:
        if not self.has_driver:
            raise NVMLError("Driver Not Loaded")

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        if self.cards[index].is_lost:
            raise NVMLError("GPU is lost")
        return self.cards[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str | None) -> Card:
        everything = [*self.cards, *(slot for card in self.cards for slot in card.slots or () if slot)]
        found = next((card for card in everything if card.uuid == uuid), None)
        if found is None:
            raise NVMLError_NotFound
        return found

    def nvmlDeviceGetMigMode(self, card: Card) -> list[int]:
        if card.slots is None:
            raise NVMLError("Not Supported")
        return [int(card.is_cut_up), int(card.is_cut_up)]

    def nvmlDeviceGetMaxMigDeviceCount(self, card: Card) -> int:
        return len(card.slots or ())

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card: Card, index: int) -> Card:
        instance = (card.slots or ())[index]
        if instance is None:
            raise self.slot_error
        return instance

    def nvmlDeviceGetCudaComputeCapability(self, card: Card) -> tuple[int, int]:
        if card not in self.cards:
            raise NVMLError("an instance has none")
        return 9, 0

    def nvmlDeviceGetUUID(self, card: Card) -> str:
        return card.uuid

    def nvmlDeviceGetName(self, card: Card) -> str:
        return card.name

    def nvmlDeviceGetMemoryInfo(self, card: Card, version: int | None = None) -> SimpleNamespace:
        if version is not None and card.used_bytes is None:
            raise NVMLError("Not Supported")  # an older driver
        return SimpleNamespace(total=card.total_bytes, used=card.used_bytes)

    def nvmlSystemGetDriverVersion(self) -> str:
        return "600.1"

    def nvmlDeviceGetComputeRunningProcesses(self, card: Card) -> list[SimpleNamespace]:
        return card.processes

    def nvmlDeviceGetGraphicsRunningProcesses(self, card: Card) -> list[SimpleNamespace]:
        return card.drawing

    def nvmlDeviceGetClockInfo(self, card: Card, kind: int) -> int:
        return 1410

    def nvmlDeviceGetPowerUsage(self, card: Card) -> int:
        return 249_500

    def nvmlDeviceGetCurrentClocksEventReasons(self, card: Card) -> int:
        return 0x01 | 0x04 | 0x20

    def nvmlDeviceGetEnforcedPowerLimit(self, card: Card) -> int:
        return 250_000

    def nvmlDeviceGetEccMode(self, card: Card) -> list[int]:
        raise NVMLError("Not Supported")


def instance(uuid: str) -> Card:
    return Card(uuid, "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10 * GIB)


def cut_up(uuid: str, *slots: Card | None) -> Card:
    return Card(uuid, slots=list(slots), is_cut_up=True)


def uuids(nvml: FakeNvml, visible: str | None = None) -> list[str | None] | None:
    found = devices_with_instances(nvml, visible)
    return None if found is None else [facts.uuid for facts in found]


HOST = FakeNvml(
    Card("GPU-old"),
    cut_up("GPU-cut", instance("MIG-1"), None, instance("MIG-2"), None),
    Card("GPU-whole", slots=[None] * 7),
)


def test_the_instances_of_a_card_stand_in_its_place():
    assert uuids(HOST) == ["GPU-old", "MIG-1", "MIG-2", "GPU-whole"]


def test_an_instance_has_its_own_name_and_memory_and_its_card_s_capability_and_driver():
    facts = devices_with_instances(HOST, "MIG-2")[0]
    assert (facts.device, facts.kind, facts.uuid) == ("cuda:0", "cuda", "MIG-2")
    assert (facts.name, facts.capacity_bytes) == ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10 * GIB)
    assert (facts.compute_capability, facts.driver) == ("9.0", "600.1")


@pytest.mark.parametrize(
    "nvml",
    [
        FakeNvml(),
        FakeNvml(Card("GPU-old"), Card("GPU-older")),
        FakeNvml(Card("GPU-whole", slots=[None])),
        FakeNvml(cut_up("GPU-cut", instance("MIG-1")), has_driver=False),
    ],
)
def test_where_no_card_is_cut_up_the_list_is_left_to_torch(nvml):
    assert devices_with_instances(nvml, None) is None


def test_a_card_that_is_cut_up_and_has_no_instance_is_no_device():
    assert uuids(FakeNvml(cut_up("GPU-cut", None, None))) == []


def test_a_card_that_is_lost_does_not_hide_the_others():
    assert uuids(FakeNvml(Card("GPU-lost", is_lost=True), cut_up("GPU-cut", instance("MIG-1")))) == ["MIG-1"]


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("", []),
        ("-1", []),
        ("MIG-1", ["MIG-1"]),
        ("MIG-2, GPU-wh", ["MIG-2", "GPU-whole"]),
        ("1", ["MIG-1", "MIG-2"]),
        ("GPU-cut", ["MIG-1", "MIG-2"]),
        ("0,2", ["GPU-old", "GPU-whole"]),
    ],
)
def test_what_the_environment_hides_is_not_listed(visible, expected):
    assert sorted(uuids(HOST, visible)) == sorted(expected)


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("MIG-1", "MIG-1"),
        (" MIG-1 ,", "MIG-1"),
        ("MIG-GPU-1/2/0", "MIG-GPU-1/2/0"),
        ("MIG-1,MIG-2", None),
        ("GPU-1", None),
        ("0", None),
        ("", None),
        (None, None),
    ],
)
def test_a_process_is_confined_to_an_instance_when_that_is_all_it_may_see(visible, expected):
    assert mig_uuid(visible) == expected


def test_what_other_processes_hold_is_told_without_this_one():
    mine, other = SimpleNamespace(pid=os.getpid(), usedGpuMemory=5), SimpleNamespace(pid=-1, usedGpuMemory=7)
    facts = driver_facts(FakeNvml(Card("GPU-1", processes=[mine, other])), "GPU-1")
    assert (facts["foreign_used_bytes"], facts["foreign_processes"]) == (7, ({"pid": -1, "used_bytes": 7},))


def test_a_desktop_and_the_memory_in_use_count_as_others():
    browser = SimpleNamespace(pid=-2, usedGpuMemory=3)
    facts = driver_facts(FakeNvml(Card("GPU-1", drawing=[browser], used_bytes=GIB)), "GPU-1")
    assert facts["foreign_processes"] == ({"pid": -2, "used_bytes": 3},)
    assert facts["foreign_used_bytes"] == GIB


def test_a_container_that_sees_no_process_still_sees_the_memory_in_use():
    facts = driver_facts(FakeNvml(Card("GPU-1", used_bytes=GIB)), "GPU-1")
    assert (facts["foreign_processes"], facts["foreign_used_bytes"]) == ((), GIB)


def test_readings_name_clock_power_and_reasons_and_leave_out_what_is_not_told():
    read = readings(FakeNvml(Card("GPU-1")), "GPU-1")
    assert (read["sm_clock_mhz"], read["power_watts"]) == (1410, 249.5)
    assert read["throttle_reasons"] == ["sw_power_cap", "sw_thermal_slowdown"]
    assert (read["temperature_celsius"], read["utilization_fraction"]) == (None, None)
    assert readings(FakeNvml(has_driver=False), "GPU-1") is None


def test_settings_name_the_power_limit_and_the_instance_s_profile():
    nvml = FakeNvml(cut_up("GPU-cut", instance("MIG-1")))
    assert settings(nvml, "MIG-1")["gpu_mig_profile"] == "1g.10gb"
    of_card = settings(nvml, "GPU-cut")
    assert (of_card["gpu_power_limit_watts"], of_card["gpu_ecc"], of_card["gpu_mig_profile"]) == (250.0, None, None)


def test_a_uuid_gets_the_prefix_by_which_the_driver_knows_it():
    nvml = FakeNvml(cut_up("GPU-cut", instance("MIG-1")))
    assert (full_uuid(nvml, "1"), full_uuid(nvml, "cut")) == ("MIG-1", "GPU-cut")


def test_a_slot_that_may_not_be_seen_does_not_hide_the_card_s_other_instances():
    nvml = FakeNvml(cut_up("GPU-cut", None, instance("MIG-1")))
    nvml.slot_error = NVMLError("No Permission")
    assert uuids(nvml) == ["MIG-1"]


def test_what_the_driver_does_not_say_is_unknown():
    unknown = SimpleNamespace(pid=-1, usedGpuMemory=None)
    assert driver_facts(FakeNvml(Card("GPU-1", processes=[unknown])), "GPU-1")["foreign_used_bytes"] is None
    assert driver_facts(FakeNvml(), "GPU-1") == {}


def card_of_torch(monkeypatch, visible: str) -> device.Accelerator:
    monkeypatch.setattr(device, "pynvml", FakeNvml(cut_up("GPU-cut", instance("MIG-1"))))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    properties = SimpleNamespace(name="A card", total_memory=9, major=9, minor=0, uuid="1234")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    return device.Accelerator(torch.device("cuda:0"))


def test_inside_an_instance_the_device_is_known_by_the_instance_s_uuid(monkeypatch):
    facts = card_of_torch(monkeypatch, "MIG-1").facts()
    assert (facts.uuid, facts.driver) == ("MIG-1", "600.1")


def test_a_whole_card_is_known_by_the_uuid_torch_tells(monkeypatch):
    assert card_of_torch(monkeypatch, "0").facts().uuid == "GPU-1234"


def test_the_devices_of_a_host_with_instances_end_with_its_cpu(monkeypatch):
    monkeypatch.setattr(device, "pynvml", HOST)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(device, "available", lambda: ("cuda:0", "cuda:1", "cpu"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [facts.uuid for facts in device.listed()] == ["GPU-old", "MIG-1", "MIG-2", "GPU-whole", None]
    assert device.listed()[-1].kind == "cpu"


@pytest.mark.parametrize(
    ("visible", "seen"),
    [
        (None, ("GPU-a", "GPU-b", "MIG-1")),
        ("", ()),
        ("-1", ()),
        ("1", ("GPU-b",)),
        ("GPU-a, 1", ("GPU-a", "GPU-b")),
        ("MIG-1", ("MIG-1",)),
    ],
)
def test_a_process_sees_the_cards_that_it_is_confined_to(visible: str | None, seen: tuple[str, ...]) -> None:
    host = FakeNvml(Card("GPU-a"), Card("GPU-b"), cut_up("GPU-cut", instance("MIG-1")), Card("GPU-lost", is_lost=True))
    assert visible_uuids(host, visible, None) == seen


def test_a_number_may_mean_any_of_unlike_cards_unless_they_are_counted_by_the_bus() -> None:
    host = FakeNvml(Card("GPU-a", name="NVIDIA T4"), Card("GPU-b", name="NVIDIA A100"))
    assert visible_uuids(host, "0", None) == ("GPU-a", "GPU-b")
    assert visible_uuids(host, "0", "PCI_BUS_ID") == ("GPU-a",)
    assert visible_uuids(host, "GPU-b", None) == ("GPU-b",)


def test_without_a_driver_no_card_is_seen() -> None:
    assert visible_uuids(FakeNvml(Card("GPU-a"), has_driver=False), None, None) == ()
