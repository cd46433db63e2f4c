"""One workload, its settings and a card over time: runs as samples, the figures that are followed, and their steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from analysis.formatting import bytes_text, number, percent_more, rate, rate_range
from analysis.lists.environment import Facts, changed
from analysis.lists.trend.step_detection import THRESHOLD, Step, Stretch, find_steps, find_stretches
from analysis.models import TrendAcknowledgement
from analysis.presentation.origin import Origin
from engine.facts.intervals import Interval

VERSIONED = (
    "Driver",
    "CUDA",
    "HIP",
    "torch",
    "transformers",
    "torchvision",
    "cudnn",
    "python",
    "Allocator settings",
)
"""Facts whose change is marked on the charts; a step names every fact that changed."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of the series. `left_out` is the reason why its figures are in no chart, or empty."""

    run_id: int
    at: datetime
    largest_batch_size: int | None
    memory: dict[int, float]
    facts: Facts
    left_out: str = ""
    origin: Origin = field(default_factory=Origin)
    speeds: dict[int, Interval] = field(default_factory=dict)
    own_settings: tuple[str, ...] = ()
    """What is known of an own script; empty for a model of the catalogue, whose settings the series names."""


@dataclass(frozen=True, slots=True)
class Series:
    """A figure over time; `better` is the good way; `values` and `intervals` are of `samples`, at `batch_size`."""

    key: str
    title: str
    better: str
    samples: tuple[Sample, ...]
    values: tuple[float, ...]
    stretches: tuple[Stretch, ...]
    batch_size: int | None = None
    intervals: tuple[Interval, ...] = ()

    @property
    def steps(self) -> list[Step]:
        return find_steps(self.stretches)

    @property
    def thresholds(self) -> list[tuple[int, int, float]]:
        """The figure from which a change for the worse is a step: (first run, last run, figure) of each level."""
        is_worse_below = self.better == "higher"
        starts = [0, *(step.index for step in self.steps)]
        levels = [self.stretches[0].median, *(step.after for step in self.steps)]
        ends = [*(start - 1 for start in starts[1:]), len(self.values) - 1]
        factor = 1 - THRESHOLD if is_worse_below else 1 + THRESHOLD
        return [(start, end, level * factor) for start, end, level in zip(starts, ends, levels, strict=True)]

    def text(self, value: float) -> str:
        if self.key == SPEED:
            return f"{rate(value)} samples/s"
        return number(value) if self.key == BOUNDARY else bytes_text(value)

    def interval_text(self, place: int) -> str:
        return rate_range(self.intervals[place].low, self.intervals[place].high) if self.intervals else ""


@dataclass(frozen=True, slots=True)
class VersionMark:
    """The first run with another version, numbered as on the charts."""

    number: int
    sample: Sample
    changes: tuple[tuple[str, str, str], ...]


BOUNDARY, PEAK, SPEED = "boundary", "peak", "speed"
METRICS = (BOUNDARY, PEAK, SPEED)


@dataclass(frozen=True, slots=True)
class SizedSpeed:
    """A speed with its interval, in samples a second, and the batch size at which it was measured."""

    batch_size: int
    speed: Interval

    @classmethod
    def of(cls, point: Mapping[str, Any] | None) -> SizedSpeed | None:
        """Read a point of a result; None where it has no interval."""
        if point is None:
            return None
        low, value, high = (point.get(f"samples_per_second{end}") for end in ("_low", "", "_high"))
        if not value or low is None or high is None:
            return None
        return cls(point["batch_size"], Interval(low, value, high))

    def __str__(self) -> str:
        return f"{rate_range(self.speed.low, self.speed.high)} samples/s at {number(self.batch_size)}"


def series_of(samples: Iterable[Sample]) -> list[Series]:
    usable = [sample for sample in samples if not sample.left_out]
    found = [_boundary_of(usable), _peak_of(usable), _speed_of(usable)]
    return [series for series in found if series is not None]


def _boundary_of(samples: Sequence[Sample]) -> Series | None:
    bounded = [(sample, float(sample.largest_batch_size)) for sample in samples if sample.largest_batch_size]
    return _series(BOUNDARY, "Largest batch size", "higher", bounded, grain=1)


def _peak_of(samples: Sequence[Sample]) -> Series | None:
    size = _most_frequent(size for sample in samples for size in sample.memory)
    if size is None:
        return None
    peaked = [(sample, sample.memory[size]) for sample in samples if size in sample.memory]
    return _series(PEAK, f"Peak memory at batch {size:,}", "lower", peaked, batch_size=size)


def _speed_of(samples: Sequence[Sample]) -> Series | None:
    size = _most_frequent(size for sample in samples for size in sample.speeds)
    if size is None:
        return None
    timed = [sample for sample in samples if size in sample.speeds]
    figures = [(sample, sample.speeds[size].value) for sample in timed]
    intervals = tuple(sample.speeds[size] for sample in timed)
    return _series(SPEED, f"Speed at batch {size:,}", "higher", figures, batch_size=size, intervals=intervals)


def _most_frequent(sizes: Iterable[int]) -> int | None:
    counts = Counter(sizes)
    return max(counts, key=lambda size: (counts[size], size), default=None)


def version_marks(samples: Sequence[Sample]) -> list[VersionMark]:
    marks: list[VersionMark] = []
    for before, after in pairwise(samples):
        changes = tuple(change for change in changed(before.facts, after.facts) if change[0] in VERSIONED)
        if changes:
            marks.append(VersionMark(len(marks) + 1, after, changes))
    return marks


def _series(
    key: str, title: str, better: str, figures: Sequence[tuple[Sample, float]], *, grain: int = 0, **more: Any
) -> Series | None:
    """Cut the figures into stretches; None without figures."""
    if not figures:
        return None
    samples, values = zip(*figures, strict=True)
    return Series(key, title, better, samples, values, tuple(find_stretches(values, grain=grain)), **more)


Acknowledgements = Mapping[tuple[int, str], TrendAcknowledgement]


@dataclass(frozen=True, slots=True)
class StepFound:
    series: Series
    step: Step
    acknowledgement: TrendAcknowledgement | None

    @property
    def before(self) -> Sample:
        return self.series.samples[self.step.index - 1]

    @property
    def after(self) -> Sample:
        return self.series.samples[self.step.index]

    @property
    def origin(self) -> Origin:
        return self.after.origin

    @property
    def is_worse(self) -> bool:
        return (self.step.fraction > 0) != (self.series.better == "higher")

    @property
    def sentence(self) -> str:
        verb = "rose" if self.step.fraction > 0 else "fell"
        size = percent_more(self.step.fraction).lstrip("+−")
        was, now = self.series.text(self.step.before), self.series.text(self.step.after)
        return f"{self.series.title} {verb} by {size}, from {was} to {now}."

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        return changed(self.before.facts, self.after.facts)


def steps_found(series: Series, acknowledgements: Acknowledgements) -> list[StepFound]:
    return [
        StepFound(series, step, acknowledgements.get((series.samples[step.index].run_id, series.key)))
        for step in series.steps
    ]
