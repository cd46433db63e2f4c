"""Rows of the tables of tested sizes, and the lines of the log: one rule says which throughputs they show."""

import pytest

from analysis.presentation.probe_rows import probe_lines
from engine.cli.printing.console import probe_line
from engine.describe.probe import describe_probe
from engine.results.result import Outcome, Probe

STEADY, MEMORY = {"samples_per_second": 8.0, "timing_is_steady": True}, {"peak_allocated_bytes": 1 << 20}


@pytest.mark.parametrize(
    ("probe", "is_shown"),
    [
        (Probe(9, Outcome.FITS, **STEADY, **MEMORY), True),
        (Probe(9, Outcome.FITS, samples_per_second=8.0, **MEMORY), True),
        (Probe(9, Outcome.FITS, **STEADY | {"timing_is_steady": False}, **MEMORY), False),
        (Probe(9, Outcome.OUT_OF_MEMORY, **STEADY, **MEMORY), False),
    ],
)
def test_no_throughput_is_shown_that_nobody_may_divide(probe: Probe, is_shown: bool) -> None:
    (line,) = probe_lines([probe], roles={})
    assert (line.samples_per_second is not None) is is_shown
    assert ("8.0 samples/s" in describe_probe(probe)) is is_shown
    assert ("8.0 samples/s" in probe_line(probe)) is is_shown
