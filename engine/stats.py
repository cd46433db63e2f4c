"""PURE: steadiness of step times, throughput, and the probe that counts for each batch size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from .result import Probe, Purpose

NOISE_FRACTION = 0.03
"""Figures of speed or cost nearer to each other than this are called the same: they vary as much from run to run."""
STEADY_WITHIN = 0.02
ENOUGH_STEPS = 6


def samples_per_second(samples_per_step: int, step_seconds: float) -> float:
    return samples_per_step / step_seconds


def is_steady(step_seconds: Sequence[float], within: float = STEADY_WITHIN) -> bool:
    """Whether the median would hardly move.

    From six steps on: both halves, taken alternately so that one slow stretch reaches both, have the median
    within `within`. With three to five: all of them lie within twice that.
    """
    if len(step_seconds) < 3:
        return False
    whole = median(step_seconds)
    if len(step_seconds) < ENOUGH_STEPS:
        return max(step_seconds) - min(step_seconds) <= 2 * within * whole
    halves = (median(step_seconds[0::2]), median(step_seconds[1::2]))
    return all(abs(half - whole) <= within * whole for half in halves)


def decisive_probes(probes: Iterable[Probe]) -> dict[int, Probe]:
    """Return the probe that counts for each batch size: the latest verdict on its memory, with the latest timing.

    A soak repeats the boundary without timing it, and a timing says nothing of memory. A fit stands against a later
    refusal in a used process: what ran before fragmented its memory.
    """
    chosen: dict[int, Probe] = {}
    for probe in probes:
        earlier = chosen.get(probe.batch_size)
        if earlier is None or not earlier.fits:
            chosen[probe.batch_size] = probe
        elif probe.purpose is Purpose.TIMING and probe.memory_bytes is None:
            chosen[probe.batch_size] = _with_timing_of(probe, earlier)
        elif (probe.fits and probe.step_seconds is not None) or (not probe.fits and probe.fresh_process):
            chosen[probe.batch_size] = probe
    return dict(sorted(chosen.items()))


def _with_timing_of(timing: Probe, probe: Probe) -> Probe:
    return replace(
        probe,
        step_seconds=timing.step_seconds,
        timed_step_seconds=timing.timed_step_seconds,
        timing_is_steady=timing.timing_is_steady,
        timing_conditions=timing.timing_conditions,
        samples_per_second=timing.samples_per_second,
    )
