"""PURE: steadiness of step times, throughput, and the probe that counts for each batch size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from .result import Probe, Purpose

NOISE_FRACTION = 0.03
"""Speeds or costs that differ by a smaller share are called the same: they vary as much from run to run."""
SAME_FRACTION = 0.0005
"""Two figures that differ by a smaller share are one figure: the difference would be written as 0.0 %."""
STEADY_WITHIN = 0.02
ENOUGH_STEPS = 6


def samples_per_second(samples_per_step: int, step_seconds: float) -> float:
    return samples_per_step / step_seconds


def is_same_figure(one: float, other: float) -> bool:
    """Whether two figures differ by rounding alone: -4 B of 15 GiB is no difference.

    >>> is_same_figure(10_000, 9_996), is_same_figure(10_000, 9_990), is_same_figure(0, 0)
    (True, False, True)
    """
    return abs(one - other) < SAME_FRACTION * abs(other) or one == other


def is_steady(step_seconds: Sequence[float], within: float = STEADY_WITHIN) -> bool:
    """Whether the median would hardly move: by halves taken alternately, so that one slow stretch reaches both."""
    if len(step_seconds) < 3:
        return False
    whole = median(step_seconds)
    if len(step_seconds) < ENOUGH_STEPS:
        return max(step_seconds) - min(step_seconds) <= 2 * within * whole
    halves = (median(step_seconds[0::2]), median(step_seconds[1::2]))
    return all(abs(half - whole) <= within * whole for half in halves)


def memory_between(known: Mapping[int, int], batch_size: int) -> float | None:
    """Return what a size takes at most, on a line between known sizes, as memory is convex; None above them all."""
    above = min((size for size in known if size >= batch_size), default=None)
    if above is None:
        return None
    below = max((size for size in known if size <= batch_size), default=above)
    share = (batch_size - below) / (above - below) if above > below else 0.0
    return known[below] + share * (known[above] - known[below])


def decisive_probes(probes: Iterable[Probe]) -> dict[int, Probe]:
    """Return the probe that counts for each batch size: the latest verdict on its memory, with the latest timing.

    A later refusal in a used process does not override a fit: what ran before fragmented its memory.
    """
    chosen: dict[int, Probe] = {}
    for probe in probes:
        earlier = chosen.get(probe.batch_size)
        if earlier is None or not earlier.fits:
            chosen[probe.batch_size] = probe
        elif probe.purpose is Purpose.TIMING and probe.memory_bytes is None:
            chosen[probe.batch_size] = replace(
                earlier,
                step_seconds=probe.step_seconds,
                timed_step_seconds=probe.timed_step_seconds,
                timing_is_steady=probe.timing_is_steady,
                timing_conditions=probe.timing_conditions,
                samples_per_second=probe.samples_per_second,
            )
        elif (probe.fits and probe.step_seconds is not None) or (not probe.fits and probe.fresh_process):
            chosen[probe.batch_size] = probe
    return dict(sorted(chosen.items()))
