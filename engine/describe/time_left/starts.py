"""PURE: how many more starts of a tuning are expected, and how long each takes by the latest ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...facts.result import Probe, Purpose
from .measurement import SoFar, bracket, less

LATEST_STARTS = 2
SEARCH_STARTS = 4.0
"""A search takes today's size, one towards the limit, and the two of the certificate. The median of the scripts of
`benchmarks/tune_corpus.py`, which take 3 to 5."""
LEAST_STARTS = 1.5  # before both neighbours are known: the certificate, and sometimes a size between
COMPARED = 2.0  # starts' worth of a comparison: most of its sizes are held


@dataclass(frozen=True, slots=True)
class StartUnderWay:
    """The number of a start, how many are expected before speeds are compared, and how long the latest ones took."""

    number: int
    expected: int
    seconds_each: float | None


def start_under_way(so_far: SoFar, number: int) -> StartUnderWay:
    """Return what is to be said of the start that runs now; the comparison of speeds counts its own rounds."""
    before_speeds = replace(so_far, compares_speed=False)
    expected = len(so_far.probes) + math.ceil(starts_left(before_speeds))
    return StartUnderWay(number, expected, seconds_of_a_start(so_far.probes))


def seconds_of_a_start(probes: Sequence[Probe]) -> float | None:
    """Return how long a start takes by the latest ones; None before the first has ended."""
    walls = [p.wall_seconds for p in probes if p.wall_seconds and p.purpose is not Purpose.TIMING]
    return max(walls[-LATEST_STARTS:], default=None)  # the sizes rise towards the limit, and so does their time


def seconds_left(so_far: SoFar) -> float | None:
    """Return how long the tuning is expected to go on; None where nothing shows it."""
    if so_far.phase == "timing" and so_far.timing_seconds_left is not None:
        return so_far.timing_seconds_left
    if (each := seconds_of_a_start(so_far.probes)) is None:
        return None
    left = each * starts_left(so_far)
    if so_far.under_way_seconds is None:
        return left
    return less(max(left, each), so_far.under_way_seconds, each)


def starts_left(so_far: SoFar) -> float:
    """Return the starts that are expected to follow, with the one under way."""
    tried = {p.batch_size for p in so_far.probes}
    compared = COMPARED + (so_far.current_batch_size not in tried) if so_far.compares_speed else 0
    if so_far.phase == "timing":
        return compared
    at_reserve = int(all(p.purpose is not Purpose.CURVE for p in so_far.probes))
    return (search_starts_left(so_far.probes) if so_far.phase == "searching" else 0) + at_reserve + compared


def search_starts_left(probes: Sequence[Probe]) -> float:
    """Return how many starts the search is expected to need until two neighbours are known, one on each side."""
    low, high = bracket(probes)
    if high == low + 1:
        return 0.0
    if high is not None and low and math.log2(high - low) <= LEAST_STARTS:
        return math.log2(high - low)
    return max(SEARCH_STARTS - len(probes), LEAST_STARTS)
