"""PURE: how many more starts are expected, how long each takes by the latest ones, and what it spends its time on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..plan import SoFar, less
from ..results.result import Outcome, Probe, Purpose
from ..text.units import format_duration
from .catalogue.command import OWN_PYTHON
from .judge.reading import Reading
from .spec import FunctionSpec, TuneSpec
from .start.progress import Ended

LATEST_STARTS = 2
SEARCH_STARTS = 4.0
"""A search takes today's size, one towards the limit, and the two of the certificate. The median of the scripts of
`benchmarks/tune_corpus.py`, which take 3 to 5."""
LEAST_STARTS = 1.5  # before both neighbours are known: the certificate, and sometimes a size between
COMPARED = 2.0  # starts' worth of a comparison: most of its sizes are held
LONG_SECONDS = 20.0
"""A start that takes less is not worth shortening."""
_LEAST_SECONDS = 0.5
_IMPORT, _BUILD = "until torch was imported", "data and model"

Mark = Sequence[Any]


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
    low = max((p.batch_size for p in probes if p.fits), default=0)
    high = min((p.batch_size for p in probes if p.outcome is not Outcome.FITS and p.batch_size > low), default=None)
    if high == low + 1:
        return 0.0
    if high is not None and low and math.log2(high - low) <= LEAST_STARTS:
        return math.log2(high - low)
    return max(SEARCH_STARTS - len(probes), LEAST_STARTS)


def describe_parts(spec: TuneSpec | FunctionSpec, readings: Iterable[Reading], ended: Ended) -> str | None:
    """Write "a start takes 41 s: 12 s until torch was imported, ...; fewer rows shorten it"; None of a short one."""
    if spec.emulated_ranks:
        return None
    trained = next((reading for reading in readings if reading.has_trained), None)
    if trained is None or ended.wall_seconds <= LONG_SECONDS:
        return None
    parts = parts_of(trained.data["marks"], ended)
    shown = [f"{format_duration(seconds)} {name}" for name, seconds in parts.items() if seconds >= _LEAST_SECONDS]
    advice = what_shortens(max(parts, key=lambda name: parts[name]), spec)
    return f"a start takes {format_duration(ended.wall_seconds)}: {', '.join(shown)}{advice and f'; {advice}'}"


def parts_of(marks: Sequence[Mark], ended: Ended) -> dict[str, float]:
    """Return the seconds of each part, in their order; marks and the start's beginning are times of one clock."""
    steps = [at for at, name, *_ in marks if name == "step"]
    armed = next((at for at, name, *_ in marks if name == "armed"), ended.began)
    forward = next((mark[0] for mark in marks if mark[1:3] == ["phase", "forward"]), steps[0])
    return {
        _IMPORT: armed - ended.began,
        _BUILD: forward - armed,
        "the first step": steps[0] - forward,
        "the others": steps[-1] - steps[0],
        "to its end": ended.began + ended.wall_seconds - steps[-1],
    }


def what_shortens(longest: str, spec: TuneSpec | FunctionSpec) -> str:
    """Return what makes the longest part of a start shorter; empty where nothing is known to."""
    if isinstance(spec, FunctionSpec):
        can_be_warm = spec.starting == "process"
    else:
        can_be_warm = spec.function is not None and spec.command[0] == OWN_PYTHON
    if longest == _IMPORT and can_be_warm:
        return "--warm (in Python warm=True) imports once"
    return "fewer rows shorten it" if longest == _BUILD and not spec.catalogue else ""
