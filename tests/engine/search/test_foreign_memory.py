"""A refusal beside other processes' memory is no evidence of what the training needs."""

from dataclasses import replace

import pytest

from engine.facts.result import DeviceFacts, Outcome, Probe, Purpose, Reason
from engine.questions import size as runner
from engine.questions.size import measure
from engine.search.foreign_memory import bytes_taken_by_others
from engine.settings.spec import RunSpec
from engine.text.units import GIB, MIB
from tests.engine.fake_worker import FakeWorker

CONTEXT_BYTES = 500 * MIB
CARD = DeviceFacts("cuda:0", "cuda", "A card", 80 * GIB, limit_bytes=80 * GIB, beside_bytes=CONTEXT_BYTES)


def fit(beside_bytes: int) -> Probe:
    return Probe(16, Outcome.FITS, beside_bytes=beside_bytes)


def refusal(beside_bytes: int | None) -> Probe:
    return Probe(17, Outcome.OUT_OF_MEMORY, beside_bytes=beside_bytes)


@pytest.mark.parametrize(
    ("beside_bytes", "taken_bytes"),
    [
        (None, 0),
        (CONTEXT_BYTES, 0),
        (CONTEXT_BYTES + 256 * MIB, 0),  # kernels that were loaded later
        (CONTEXT_BYTES + 257 * MIB, 257 * MIB),
        (CONTEXT_BYTES + 20 * GIB, 20 * GIB),
    ],
)
def test_growth_since_a_size_that_fitted_is_taken_by_others(beside_bytes, taken_bytes):
    assert bytes_taken_by_others(refusal(beside_bytes), [fit(CONTEXT_BYTES)], CARD) == taken_bytes


def test_growth_before_anything_fitted_is_compared_with_the_opened_device():
    assert bytes_taken_by_others(refusal(CONTEXT_BYTES + GIB), [], CARD) == 0
    assert bytes_taken_by_others(refusal(CONTEXT_BYTES + 3 * GIB), [], CARD) == 3 * GIB


def test_a_tenant_that_was_there_from_the_start_counts_too():
    occupied = DeviceFacts("cuda:0", "cuda", "A card", 80 * GIB, limit_bytes=80 * GIB, beside_bytes=30 * GIB)
    assert bytes_taken_by_others(refusal(30 * GIB), [fit(30 * GIB)], occupied) == 30 * GIB
    told = replace(occupied, foreign_used_bytes=30 * GIB - CONTEXT_BYTES)
    assert bytes_taken_by_others(refusal(30 * GIB), [fit(30 * GIB)], told) == 30 * GIB - CONTEXT_BYTES


def test_a_card_is_shared_when_more_than_a_context_is_held_whatever_the_driver_lists():
    in_container = DeviceFacts("cuda:0", "cuda", "A card", 80 * GIB, beside_bytes=30 * GIB, foreign_used_bytes=0)
    assert (in_container.is_shared, in_container.others_bytes) == (True, None)
    assert (CARD.is_shared, CARD.others_bytes) == (False, 0)


def test_a_desktop_s_memory_leaves_the_certificate():
    desktop = DeviceFacts("cuda:0", "cuda", "A card", 24 * GIB, beside_bytes=GIB, foreign_used_bytes=600 * MIB)
    assert bytes_taken_by_others(refusal(GIB + 100 * MIB), [fit(GIB)], desktop) == 0


def test_others_take_nothing_of_a_limit_below_what_they_leave():
    limited = DeviceFacts("cuda:0", "cuda", "A card", 80 * GIB, limit_bytes=24 * GIB, beside_bytes=CONTEXT_BYTES)
    assert bytes_taken_by_others(refusal(50 * GIB), [fit(CONTEXT_BYTES)], limited) == 0
    assert bytes_taken_by_others(refusal(60 * GIB), [fit(CONTEXT_BYTES)], limited) == 4 * GIB


class TenantWorker(FakeWorker):
    """A card whose tenant holds `held_bytes(number of the probe)`: sizes that reach into that are refused."""

    def __init__(self, boundary, held_bytes) -> None:
        super().__init__(boundary)
        self.held_bytes = held_bytes
        self.device = DeviceFacts(
            "cuda:0", "cuda", "A card", 80 * GIB, limit_bytes=80 * GIB, beside_bytes=CONTEXT_BYTES
        )
        self.boundary = boundary

    def probe(self, batch_size, **settings):
        held_bytes = self.held_bytes(len(self.sizes))
        room = 1 - held_bytes / (80 * GIB)
        made = super().probe(batch_size, **settings)
        if made.fits and batch_size > self.boundary * room:
            made = Probe(batch_size, Outcome.OUT_OF_MEMORY, fresh_process=made.fresh_process, error_message="refused")
            self.is_fresh = True
        used = {"peak_reserved_bytes": round(batch_size / self.boundary * 79 * GIB)} if made.fits else {}
        return type(made)(**{**made_fields(made), **used, "beside_bytes": CONTEXT_BYTES + held_bytes})


def made_fields(probe: Probe) -> dict:
    return {name: getattr(probe, name) for name in Probe.__dataclass_fields__}


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(runner, "FOREIGN_MEMORY_PAUSE_SECONDS", 0.0)


def run(worker, events=None):
    emit = (events if events is not None else []).append
    return measure(RunSpec("bert-tiny"), emit, worker=worker, estimates=False)


def test_a_tenant_that_comes_and_stays_leaves_no_certificate_and_is_named():
    events: list[dict] = []
    result = run(TenantWorker(544, lambda number: 30 * GIB if number >= 3 else 0), events)
    assert (result.boundary.certified, result.boundary.reason) == (False, Reason.FOREIGN_MEMORY)
    assert result.boundary.note.startswith("others held 30.0 GiB of the device when batch ")
    assert result.boundary.largest_batch_size == 340
    again = [e for e in events if e["event"] == "log" and "is tested again" in e["message"]]
    assert 0 < len(again) <= runner.FOREIGN_MEMORY_REPEATS  # a tenant that stays is waited for once


def test_a_tenant_that_leaves_again_does_no_harm():
    result = run(TenantWorker(544, lambda number: 30 * GIB if number in (3, 4) else 0))
    assert (result.boundary.largest_batch_size, result.boundary.refused_batch_size) == (544, 545)
    assert result.boundary.certified


def test_a_tenant_that_fills_the_card_from_the_start_is_no_proof_that_batch_1_does_not_fit():
    result = run(TenantWorker(544, lambda _: 79.9 * GIB))
    assert (result.boundary.largest_batch_size, result.boundary.reason) == (None, Reason.FOREIGN_MEMORY)
    assert not result.boundary.certified


def test_a_tenant_that_comes_for_the_soak_leaves_no_certificate():
    worker = TenantWorker(544, lambda _: 0)
    calm = run(worker)
    before_soak = next(i for i, p in enumerate(calm.probes) if p.purpose is Purpose.SOAK)
    result = run(TenantWorker(544, lambda number: 30 * GIB if number >= before_soak else 0))
    assert (result.boundary.certified, result.boundary.reason) == (False, Reason.FOREIGN_MEMORY)
    assert "others held 30.0 GiB" in result.boundary.note
