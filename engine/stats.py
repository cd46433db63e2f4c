"""PURE: medians, steadiness, throughput, and the choice among measured batch sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from engine.result import Probe

STEADY_WITHIN = 0.02
ENOUGH_STEPS = 6
RECOMMENDED_WITHIN = 0.03


def samples_per_second(batch_size: int, step_seconds: float) -> float:
    return batch_size / step_seconds


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
    """The probe that counts for each batch size: the latest verdict, with its timing where one was taken.

    A soak repeats the boundary without timing it; the timed probe of the same size then stands. So does a
    fit against a later refusal in a used process: what ran before fragmented its memory.
    """
    chosen: dict[int, Probe] = {}
    for probe in probes:
        earlier = chosen.get(probe.batch_size)
        had_fitted = earlier is not None and earlier.fits
        is_untimed_repeat = probe.fits and probe.step_seconds is None
        is_spoiled = not probe.fits and not probe.fresh_process
        if not (had_fitted and (is_untimed_repeat or is_spoiled)):
            chosen[probe.batch_size] = probe
    return dict(sorted(chosen.items()))


def fastest(probes: Iterable[Probe]) -> Probe | None:
    """The fitting probe with the highest measured throughput; the smaller batch where two are equal."""
    timed = [p for p in probes if p.fits and p.samples_per_second is not None]
    return max(timed, key=lambda p: (p.samples_per_second or 0.0, -p.batch_size), default=None)


def recommended(probes: Sequence[Probe], within: float = RECOMMENDED_WITHIN) -> Probe | None:
    """The smallest fitting batch whose measured throughput is within `within` of the fastest."""
    best = fastest(probes)
    if best is None or best.samples_per_second is None:
        return None
    floor = best.samples_per_second * (1 - within)
    return min((p for p in probes if p.fits and (p.samples_per_second or 0.0) >= floor), key=lambda p: p.batch_size)
