"""PURE: one probe in words: how it ended, what it measured, and what it was run for."""

from __future__ import annotations

from ..facts.result import Outcome, Probe, Purpose
from ..text.units import format_bytes

OUTCOMES = {
    Outcome.FITS: "fits",
    Outcome.OUT_OF_MEMORY: "out of memory",
    Outcome.SIZE_LIMIT: "size limit",
    Outcome.ERROR: "failed",
}
PURPOSES = {
    Purpose.CONFIRM: "confirmed in a fresh process",
    Purpose.SOAK: "soak run",
    Purpose.CURVE: "for the curve",
    Purpose.TIMING: "timed in turns",
}
"""What a probe was run for, where that was not the search."""
_REASON_MOST, _TYPE_MOST = 300, 60


def describe_probe(probe: Probe) -> str:
    """Write "batch 16 fits: 1.7 GiB, 9.8 samples/s, 3 steps"; of a refusal where it was refused, and why."""
    said = f"batch {probe.batch_size}{' ' if probe.fits else ': '}{describe_outcome(probe)}"
    if probe.fits:
        figures = [] if probe.memory_bytes is None else [format_bytes(probe.memory_bytes)]
        throughput = shown_throughput(probe)
        figures += [] if throughput is None else [f"{throughput:.1f} samples/s"]
        figures += [f"{probe.steps} steps"] if probe.steps else []
        return f"{said}: {', '.join(figures)}" if figures else said
    prefix = f"{str(probe.outcome).replace('_', ' ')}: "
    reason = (probe.error_message or "").removeprefix(prefix).strip().splitlines()
    return f"{said} ({reason[0][:_REASON_MOST]})" if reason else said


def shown_throughput(probe: Probe) -> float | None:
    """Return the throughput of steady steps, else None: readers divide figures that stand below each other."""
    return probe.samples_per_second if probe.fits and probe.timing_is_steady is not False else None


def describe_outcome(probe: Probe) -> str:
    """Write "fits", "timed", "out of memory in optimizer step", or "failed with AssertionError"."""
    if probe.fits:
        return "timed" if probe.purpose is Purpose.TIMING else OUTCOMES[Outcome.FITS]
    where = f" in {probe.failed_phase.replace('_', ' ')}" if probe.failed_phase else ""
    error = f" with {probe.error_type[:_TYPE_MOST]}" if probe.outcome is Outcome.ERROR and probe.error_type else ""
    return f"{OUTCOMES[probe.outcome]}{error}{where}"
