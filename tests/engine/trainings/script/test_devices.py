"""A training holds the devices that it may use, so that no other run disturbs it."""

from pathlib import Path

import pytest

from engine.errors import DeviceBusy, DeviceUnavailable
from engine.machine.device_lock import held, lock_path
from engine.text.units import GIB
from engine.trainings.script import devices
from engine.trainings.script.devices import devices_held, devices_seen
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.spec import TuneSpec

COMMAND = ("python", "train.py", "{batch_size}")
CARDS = ("GPU-a", "GPU-b")


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEMORYMARK_LOCK_DIR", str(tmp_path))
    monkeypatch.delenv("MEMORYMARK_DEVICE_LOCK", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def with_cards(monkeypatch: pytest.MonkeyPatch, *uuids: str) -> None:
    """Give this host these cards: equal ones, which CUDA and the driver count alike."""

    def seen(_: object, visible: str | None, __: object) -> tuple[str, ...]:
        return uuids if visible is None else tuple(uuid for n, uuid in enumerate(uuids) if str(n) in visible)

    monkeypatch.setattr(devices.nvml, "visible_uuids", seen)


@pytest.mark.parametrize(
    ("device", "visible", "cards", "seen"),
    [
        ("cpu", None, CARDS, [("cpu", None)]),
        ("auto", None, CARDS, [("cuda:0", "GPU-a"), ("cuda:1", "GPU-b")]),
        ("cuda", "1", CARDS, [("cuda:0", "GPU-b")]),
        ("cuda:1", None, CARDS, [("cuda:0", "GPU-b")]),
        ("auto", "", CARDS, [("cpu", None)]),
        ("auto", None, (), [("cpu", None)]),
        ("cuda:1", None, (), [("cuda:1", None)]),
        ("xpu", None, CARDS, [("xpu:0", None)]),
    ],
)
def test_a_training_may_use_all_cards_that_it_sees(monkeypatch, device, visible, cards, seen) -> None:
    with_cards(monkeypatch, *cards)
    monkeypatch.setattr(devices, "DRIVER_FILES", ("/dev/null",))  # of a card that NVIDIA's driver does not list
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [(each.device, each.uuid) for each in devices_seen(TuneSpec(COMMAND, device=device))] == seen


def test_a_card_that_is_not_there_is_refused_before_anything_is_held(monkeypatch) -> None:
    with_cards(monkeypatch, *CARDS)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(DeviceUnavailable), devices_held(TuneSpec(COMMAND, device="cuda:1")):
        pass


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_cuda_is_refused_at_once_where_no_gpu_has_a_driver(monkeypatch, device: str) -> None:
    with_cards(monkeypatch)
    monkeypatch.setattr(devices, "DRIVER_FILES", ("/dev/no-such-driver",))
    with pytest.raises(DeviceUnavailable) as refused, devices_held(TuneSpec(COMMAND, device=device)):
        pass
    assert str(refused.value) == f"{device} is not available here: this host has no GPU's driver; available: cpu"


def test_one_busy_card_of_two_refuses_a_training_that_sees_both_and_none_that_sees_the_other(monkeypatch) -> None:
    with_cards(monkeypatch, *CARDS)
    with held(lock_path(device="cuda:1", uuid="GPU-b"), "cuda:1", work="another run"):
        with pytest.raises(DeviceBusy, match=r"cuda:1 is busy: .*another run"), devices_held(TuneSpec(COMMAND)):
            pass
        first = held(lock_path(device="cuda:0", uuid="GPU-a"), "cuda:0")
        with devices_held(TuneSpec(COMMAND, device="cuda:0")), pytest.raises(DeviceBusy), first:
            pass
    with devices_held(TuneSpec(COMMAND)):  # what was taken before the refusal is free again
        pass


def test_a_card_that_was_trained_on_is_known_by_the_name_that_the_driver_gives_it() -> None:
    card = {"name": "NVIDIA A100", "total_bytes": 10, "uuid": "1f2e", "compute_capability": "8.0"}
    others = {"foreign_used_bytes": 30 * GIB}
    facts = devices.facts_of(
        TuneSpec(COMMAND), Reading({"device": "cuda:0", "card": card}), {f"GPU-{card['uuid']}": others}
    )
    assert (facts.is_shared, facts.foreign_used_bytes) == (True, 30 * GIB)
    assert (facts.uuid, facts.kind) == ("GPU-1f2e", "cuda")
