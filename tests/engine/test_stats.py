"""Steadiness of step times, and the probe that counts for each batch size."""

import pytest

from engine.results.result import Outcome, Probe, Purpose
from engine.results.stats import decisive_probes, is_steady


def probe(batch_size: int, samples_per_second: float | None = None, **changes) -> Probe:
    seconds = None if samples_per_second is None else batch_size / samples_per_second
    return Probe(
        batch_size,
        **{"outcome": Outcome.FITS, "samples_per_second": samples_per_second, "step_seconds": seconds} | changes,
    )


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([1.0, 1.0], False),
        ([1.0, 1.01, 1.03], True),
        ([1.0, 1.01, 1.05], False),
        ([1.0, 1.01, 1.0, 0.99, 1.0, 1.01], True),
        ([1.0, 1.5, 1.0, 1.5, 1.0, 1.5], False),
        ([9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], True),
    ],
)
def test_timing_is_steady_when_both_halves_agree_with_the_whole(seconds, expected):
    assert is_steady(seconds) is expected


def test_a_soak_that_fits_leaves_the_timed_probe_standing():
    timed, soak = probe(64, 100), probe(64, purpose=Purpose.SOAK)
    assert decisive_probes([timed, soak])[64] is timed


def test_a_refusal_in_a_used_process_does_not_overrule_a_fit():
    fitted, spoiled = probe(64, 100), probe(64, outcome=Outcome.OUT_OF_MEMORY)
    assert decisive_probes([fitted, spoiled])[64] is fitted


def test_a_soak_that_fails_overrules_the_probe_that_fitted():
    failed = probe(64, purpose=Purpose.SOAK, outcome=Outcome.OUT_OF_MEMORY, fresh_process=True)
    assert decisive_probes([probe(64, 100), failed])[64] is failed


def test_a_timing_adds_the_speed_and_leaves_the_memory_as_it_was():
    tried, timed = probe(64, peak_allocated_bytes=7), probe(64, 100, purpose=Purpose.TIMING)
    together = decisive_probes([tried, timed])[64]
    assert (together.memory_bytes, together.samples_per_second, together.purpose) == (7, 100, Purpose.SEARCH)
