"""Medians, steadiness and the choice among measured batch sizes."""

import pytest

from engine.result import Outcome, Probe, Purpose
from engine.stats import decisive_probes, fastest, is_steady, recommended


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


def test_the_recommended_size_is_the_smallest_within_three_percent_of_the_fastest():
    probes = [probe(8, 60), probe(64, 97.1), probe(128, 100), probe(256, 99)]
    assert fastest(probes).batch_size == 128
    assert recommended(probes).batch_size == 64


def test_a_size_just_outside_three_percent_is_not_recommended():
    assert recommended([probe(64, 96.9), probe(128, 100)]).batch_size == 128


def test_only_sizes_that_fit_and_were_timed_are_recommended():
    refused = probe(512, 900, outcome=Outcome.OUT_OF_MEMORY)
    assert recommended([probe(8, 60), probe(16), refused]).batch_size == 8
    assert recommended([probe(16)]) is None


def test_a_soak_that_fits_leaves_the_timed_probe_standing():
    timed, soak = probe(64, 100), probe(64, purpose=Purpose.SOAK)
    assert decisive_probes([timed, soak])[64] is timed


def test_a_refusal_in_a_used_process_does_not_overrule_a_fit():
    fitted, spoiled = probe(64, 100), probe(64, outcome=Outcome.OUT_OF_MEMORY)
    assert decisive_probes([fitted, spoiled])[64] is fitted


def test_a_soak_that_fails_overrules_the_probe_that_fitted():
    failed = probe(64, purpose=Purpose.SOAK, outcome=Outcome.OUT_OF_MEMORY, fresh_process=True)
    assert decisive_probes([probe(64, 100), failed])[64] is failed
