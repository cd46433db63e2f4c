"""What the engine itself reports comes out as it was."""

import random
from dataclasses import replace
from typing import Any

import pytest

from engine.facts.result import DeviceFacts, Outcome, Probe, Reason
from engine.search.resume import EarlierAttempt
from engine.text.units import MIB
from tests.engine.honest_worker import LIMIT_BYTES, HonestWorker, document_of
from tests.engine.questions.answers.answers import differing


def earlier_attempt(document: dict[str, Any], *, is_over: bool = False) -> EarlierAttempt:
    boundary = {"boundary": document["boundary"]} if is_over else {}
    return EarlierAttempt.from_dict({name: document[name] for name in ("device", "environment", "probes")} | boundary)


SLOW_IN_THE_END = {"step_seconds": lambda size: 0.01 + 0.001 * size + (0.4 if size > 300 else 0.0)}
RUNS: dict[str, Any] = {
    "certified": (HonestWorker(528), {}, Reason.OUT_OF_MEMORY),
    "today is the recommended size": (HonestWorker(40, step_seconds=lambda _: 0.1), {}, Reason.OUT_OF_MEMORY),
    "the largest is not the fastest": (HonestWorker(528, **SLOW_IN_THE_END), {}, Reason.OUT_OF_MEMORY),
    "noisy": (HonestWorker(100, noise=0.4), {}, Reason.OUT_OF_MEMORY),
    "during other work": (HonestWorker(100, noise=0.1, others_cores=3.0), {}, Reason.OUT_OF_MEMORY),
    "ahead of today's during other work": (
        HonestWorker(528, step_seconds=lambda _: 0.1, others_cores=1.5),
        {},
        Reason.OUT_OF_MEMORY,
    ),
    "sizes that could not be timed": (
        HonestWorker(528, not_together=frozenset({528, 4})),
        {},
        Reason.OUT_OF_MEMORY,
    ),
    "soak moved down": (HonestWorker(528, soak_boundary=500), {}, Reason.OUT_OF_MEMORY),
    "soak refused all": (HonestWorker(3, soak_boundary=0), {}, Reason.DOES_NOT_FIT),
    "does not fit": (HonestWorker(0), {}, Reason.DOES_NOT_FIT),
    "size limit": (HonestWorker(70, refusal=Outcome.SIZE_LIMIT), {}, Reason.SIZE_LIMIT),
    "maximum": (HonestWorker(528), {"max_batch_size": 64}, Reason.MAX_BATCH_SIZE),
    "today above the maximum": (
        HonestWorker(528),
        {"max_batch_size": 64, "current_batch_size": 128},
        Reason.MAX_BATCH_SIZE,
    ),
    "today above the boundary": (HonestWorker(10), {"current_batch_size": 64}, Reason.OUT_OF_MEMORY),
    "one size": (HonestWorker(50), {"check_batch_size": 32}, Reason.ONE_SIZE),
    "one size, refused": (HonestWorker(20), {"check_batch_size": 32}, Reason.ONE_SIZE),
    "spoiled processes": (HonestWorker(528, refuses_when_used=frozenset({16, 64, 128})), {}, Reason.OUT_OF_MEMORY),
    "reserve": (HonestWorker(528), {"reserve_fraction": 0.3}, Reason.OUT_OF_MEMORY),
    "reserve in bytes": (HonestWorker(528), {"reserve_bytes": 1285}, Reason.OUT_OF_MEMORY),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_any_outcome_claims_what_its_probes_show(name: str) -> None:
    worker, settings, reason = RUNS[name]
    document = document_of(worker, **settings)
    assert document["boundary"]["reason"] == reason
    assert differing(document) == []


def test_the_order_is_claimed_without_a_factor() -> None:
    document = document_of(RUNS["ahead of today's during other work"][0])
    assert (document["speed"]["claim"], document["speedup"], document["speedup_low"]) == ("ahead", None, None)
    assert document["savings"]["per_year_usd"] is None
    assert differing(document) == []


@pytest.mark.parametrize("steps", range(40))
def test_a_run_that_ran_out_of_time_anywhere_claims_what_its_probes_show(steps: int) -> None:
    assert differing(document_of(HonestWorker(90, soak_boundary=80, time_is_up_after=steps))) == []


@pytest.mark.parametrize("seed", range(25))
def test_random_machines_are_believed(seed: int) -> None:
    rng = random.Random(seed)
    boundary = round(10 ** rng.uniform(0, 4))
    worker = HonestWorker(
        boundary,
        seed=seed,
        noise=rng.choice([0.001, 0.02, 0.3]),
        others_cores=rng.choice([None, 0.0, 5.0]),
        soak_boundary=rng.choice([None, boundary, max(boundary - 3, 0)]),
        not_together=frozenset(rng.choice([(), (boundary,), (1, boundary)])),
    )
    settings = {"current_batch_size": rng.choice([1, 16, boundary]), "reserve_fraction": rng.choice([0.0, 0.05, 0.5])}
    assert differing(document_of(worker, **settings)) == []


def test_a_resumed_run_is_believed_and_one_whose_speeds_alone_are_new() -> None:
    first = document_of(HonestWorker(528, time_is_up_after=4))
    resumed = document_of(HonestWorker(528), earlier=earlier_attempt(first))
    again = document_of(HonestWorker(528, seed=1), earlier=earlier_attempt(resumed, is_over=True))
    assert resumed["boundary"]["certified"]
    assert "an earlier run's" in again["boundary"]["note"]
    assert [differing(each) for each in (first, resumed, again)] == [[], [], []]


class Shared(HonestWorker):
    """A card of which others take half, from its `after`-th probe on."""

    def __init__(self, boundary: int, after: int) -> None:
        super().__init__(boundary)
        self.after = after
        self.device = DeviceFacts("cuda:0", "cuda", "A card", 2 * LIMIT_BYTES, limit_bytes=LIMIT_BYTES, beside_bytes=0)

    def probe(self, batch_size: int, **options: Any) -> Probe:
        probe = replace(super().probe(batch_size, **options), error_type=None)
        held = 2 * LIMIT_BYTES - 1 if len(self.sizes) > self.after and not probe.fits else 0
        return replace(probe, beside_bytes=held, peak_reserved_bytes=probe.peak_allocated_bytes if probe.fits else None)


@pytest.mark.parametrize("after", [0, 3, 100])
def test_a_run_on_a_shared_card_is_believed(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.questions.size.FOREIGN_MEMORY_PAUSE_SECONDS", 0.0)
    document = document_of(Shared(528, after), device="cuda")
    assert document["boundary"]["reason"] == (Reason.FOREIGN_MEMORY if after < 100 else Reason.OUT_OF_MEMORY)
    assert differing(document) == []


class Card(HonestWorker):
    """A card with a caching allocator: reserves in whole segments, in addition to a context; all of it is allowed."""

    CONTEXT_BYTES, SEGMENT_BYTES = 300 * MIB, 2 * MIB

    def __init__(self, boundary: int, capacity_bytes: int) -> None:
        super().__init__(boundary)
        context = {"beside_bytes": self.CONTEXT_BYTES, "foreign_used_bytes": 0}
        self.device = DeviceFacts("cuda:0", "cuda", "A card", capacity_bytes, limit_bytes=LIMIT_BYTES, **context)

    def probe(self, batch_size: int, **options: Any) -> Probe:
        probe = super().probe(batch_size, **options)
        held = self.CONTEXT_BYTES
        if not probe.fits:
            reached = (probe.peak_allocated_bytes or 0) // 2
            refused = replace(probe, error_type="OutOfMemoryError", failed_phase="backward", beside_bytes=held)
            return replace(refused, peak_allocated_bytes=reached, peak_reserved_bytes=reached)
        allocated = probe.peak_allocated_bytes or 0
        reserved = min(-(-allocated // self.SEGMENT_BYTES) * self.SEGMENT_BYTES, LIMIT_BYTES)
        used = min(reserved + held, self.device.capacity_bytes if self.device else 0)
        return replace(probe, peak_reserved_bytes=reserved, device_used_bytes=used, beside_bytes=held)


@pytest.mark.parametrize(("capacity_bytes", "limit"), [(2 * LIMIT_BYTES, LIMIT_BYTES), (LIMIT_BYTES, None)])
@pytest.mark.parametrize("boundary", [0, 1, 90])
def test_a_run_on_a_card_is_believed(boundary: int, capacity_bytes: int, limit: int | None) -> None:
    document = document_of(Card(boundary, capacity_bytes), device="cuda", memory_limit_bytes=limit)
    assert document["boundary"]["certified"]
    assert differing(document) == []
