"""Somebody else on the card: no certificate rests on memory that they held."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.errors import DeviceUnavailable
from engine.facts.result import Boundary, Probe, Reason, RunResult
from engine.text.units import GIB, MIB
from tests.cuda_stand_in.cards import CONTEXT_BYTES, Cards, WarmEngine

CARD = {"memory": 4 * GIB}
SHORT = {"sequence_length": 128, "start_batch_size": 64}
TENANT_BYTES = 9 * GIB // 4


@pytest.fixture(scope="module")
def alone(warm: WarmEngine) -> RunResult:
    return warm.measure(CARD, **SHORT)


class Guest:
    """A tenant that comes, and perhaps leaves, when the run says certain events; the run waits meanwhile."""

    def __init__(
        self, cards: Cards, comes: Callable[[dict], bool], leaves: Callable[[dict], bool] | None = None
    ) -> None:
        self.cards, self.comes, self.leaves = cards, comes, leaves
        self.tenant: Any = None
        self.has_left = False

    def __call__(self, event: dict) -> None:
        if self.tenant is None and self.comes(event):
            self.tenant = self.cards.tenant()
            assert self.tenant.take(TENANT_BYTES) == 0
        elif self.tenant is not None and not self.has_left and self.leaves is not None and self.leaves(event):
            self.tenant.end()
            self.has_left = True


def before_probe(number: int) -> Callable[[dict], bool]:
    """Whether an event is the beginning of the probe with this number."""
    seen = 0

    def is_it(event: dict) -> bool:
        nonlocal seen
        seen += event["event"] == "probe_started"
        return seen == number

    return is_it


def in_phase(name: str) -> Callable[[dict], bool]:
    return lambda event: event["event"] == "phase" and event["phase"] == name


def refusal(event: dict) -> bool:
    return event["event"] == "probe" and event["probe"]["outcome"] == "out_of_memory"


def is_not_evidence(boundary: Boundary) -> None:
    assert not boundary.certified
    assert boundary.reason == Reason("foreign_memory")
    assert f"others held {(TENANT_BYTES + CONTEXT_BYTES) / GIB:.1f} GiB" in (boundary.note or "")


def test_a_card_of_ones_own_is_certified(alone: RunResult) -> None:
    assert alone.boundary.certified
    assert not alone.device.is_shared


def test_every_probe_knows_what_the_device_held_beside_the_run(alone: RunResult) -> None:
    assert {probe.beside_bytes for probe in alone.probes} == {CONTEXT_BYTES}


def test_a_tenant_that_comes_and_stays_prevents_the_certificate(warm: WarmEngine) -> None:
    result = warm.measure(CARD, Guest(warm.cards, before_probe(2)), **SHORT)
    is_not_evidence(result.boundary)


def test_a_tenant_that_comes_and_leaves_does_no_harm(warm: WarmEngine, alone: RunResult) -> None:
    result = warm.measure(CARD, Guest(warm.cards, before_probe(2), leaves=refusal), **SHORT)
    assert result.boundary.certified
    assert result.boundary.largest_batch_size == alone.boundary.largest_batch_size


@pytest.mark.nightly
def test_a_tenant_that_comes_during_the_soak_prevents_the_certificate(warm: WarmEngine) -> None:
    result = warm.measure(CARD, Guest(warm.cards, in_phase("soaking")), **SHORT)
    is_not_evidence(result.boundary)


@pytest.mark.parametrize(
    "container", [{}, {"pid_shift": 70_000, "process_memory_unknown": 1}], ids=["host", "container"]
)
def test_a_tenant_that_was_there_before_prevents_the_certificate(warm: WarmEngine, container: dict) -> None:
    result = warm.measure({**CARD, **container}, Guest(warm.cards, in_phase("preparing")), **SHORT)
    is_not_evidence(result.boundary)
    assert result.device.is_shared


def test_somebody_whom_nobody_lists_prevents_the_certificate(warm: WarmEngine) -> None:
    result = warm.measure({**CARD, "held": TENANT_BYTES + CONTEXT_BYTES}, **SHORT)
    is_not_evidence(result.boundary)


def test_a_tenant_beside_a_memory_limit_takes_nothing_from_the_run(warm: WarmEngine) -> None:
    limit = {"memory_limit_bytes": GIB // 2}
    result = warm.measure(CARD, Guest(warm.cards, in_phase("preparing")), **SHORT, **limit)
    undisturbed = warm.measure(CARD, **SHORT, **limit)
    assert result.boundary.certified
    assert result.boundary.largest_batch_size == undisturbed.boundary.largest_batch_size
    assert result.device.is_shared


@pytest.mark.nightly
def test_a_boundary_that_others_moved_down_below_a_limit_says_so(warm: WarmEngine) -> None:
    limit = {"memory_limit_bytes": GIB}  # more than the tenant leaves
    result = warm.measure(CARD, Guest(warm.cards, in_phase("preparing")), **SHORT, **limit)
    undisturbed = warm.measure(CARD, **SHORT, **limit)
    assert result.boundary.largest_batch_size < undisturbed.boundary.largest_batch_size
    assert "others held" in (result.boundary.note or "")


def test_a_desktop_is_seen_and_its_memory_is_not_the_trainings(warm: WarmEngine, alone: RunResult) -> None:
    desktop_bytes = 600 * MIB
    result = warm.measure({**CARD, "desktop": desktop_bytes}, **SHORT)
    assert result.device.is_shared
    assert result.device.foreign_used_bytes == desktop_bytes
    assert result.boundary.certified
    assert result.boundary.largest_batch_size < alone.boundary.largest_batch_size
    assert "others held 600.0 MiB" in (result.boundary.note or "")
    assert result.largest.memory_bytes <= 4 * GIB - desktop_bytes


def test_a_process_in_a_container_is_not_foreign_to_itself(warm: WarmEngine, alone: RunResult) -> None:
    result = warm.measure({**CARD, "pid_shift": 70_000}, **SHORT)
    assert not result.device.is_shared
    assert result.boundary.certified
    assert result.boundary.largest_batch_size == alone.boundary.largest_batch_size


@pytest.mark.parametrize(
    ("knobs", "what_is_held"),
    [({"held": 4 * GIB - 100 * MIB}, "3.9 GiB"), ({"memory": GIB, "desktop": 700 * MIB}, "700.0 MiB")],
    ids=["hidden", "desktop"],
)
def test_a_card_too_full_for_a_context_is_unavailable(warm: WarmEngine, knobs: dict, what_is_held: str) -> None:
    with pytest.raises(DeviceUnavailable, match=what_is_held):
        warm.measure({**CARD, **knobs}, **SHORT)


@pytest.mark.xfail(
    raises=DeviceUnavailable, reason="a session that finds no room for its context ends the run and its answer"
)
def test_a_card_that_a_tenant_filled_during_the_run_loses_no_probe(warm: WarmEngine) -> None:
    kept: list[Probe] = []

    def fill(event: dict) -> None:
        if event["event"] == "probe":
            kept.append(Probe.from_dict(event["probe"]))
        if in_phase("soaking")(event):
            tenant = warm.cards.tenant()
            assert tenant.open_context() == 0
            while tenant.take(32 * MIB) == 0:
                pass

    result = warm.measure(CARD, fill, **SHORT)
    assert not result.boundary.certified
    assert len(result.probes) >= len(kept) > 2
