"""A probe in words: how it ended, and what it measured."""

import pytest

from engine.describe.probe import describe_probe
from engine.results.result import Outcome, Probe, Purpose
from engine.text.units import GIB


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        (
            Probe(16, Outcome.FITS, steps=3, peak_allocated_bytes=int(1.7 * GIB), samples_per_second=9.84),
            "batch 16 fits: 1.7 GiB, 9.8 samples/s, 3 steps",
        ),
        (Probe(16, Outcome.FITS, peak_allocated_bytes=GIB, peak_reserved_bytes=2 * GIB), "batch 16 fits: 2.0 GiB"),
        (Probe(2, Outcome.FITS), "batch 2 fits"),
        (Probe(9, Outcome.OUT_OF_MEMORY, error_message="too much\nmore"), "batch 9: out of memory (too much)"),
        (Probe(9, Outcome.OUT_OF_MEMORY, error_message="out of memory: 2 B"), "batch 9: out of memory (2 B)"),
        (Probe(9, Outcome.OUT_OF_MEMORY), "batch 9: out of memory"),
        (Probe(9, Outcome.SIZE_LIMIT, error_message="int32"), "batch 9: size limit (int32)"),
        (Probe(9, Outcome.ERROR, failed_phase="optimizer_step"), "batch 9: failed in optimizer step"),
        (Probe(4, Outcome.FITS, Purpose.TIMING, samples_per_second=8.0), "batch 4 timed: 8.0 samples/s"),
    ],
)
def test_a_probe_is_described_in_a_line(probe: Probe, expected: str) -> None:
    assert describe_probe(probe) == expected
