"""One workload, its settings and a card over time: the runs as samples, and the two figures that are followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from analysis.pages.compare.environment import Facts, changed, environment_facts
from analysis.pages.trend.step_detection import Step, Stretch, find_steps, find_stretches
from analysis.presentation.charts.curves import ProbeRow, memory_points
from analysis.presentation.formatting import bytes_text, number
from engine.result import DeviceFacts

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
class TrendRun:
    """What is read of a finished run, with two parts of its result."""

    pk: int
    finished_at: datetime
    largest_batch_size: int | None
    certified: bool | None
    is_shared: bool | None
    environment: Mapping[str, Any]
    device_facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of the series. `left_out` is the reason why its figures are in no chart, or empty."""

    run_id: int
    at: datetime
    largest_batch_size: int | None
    memory: dict[int, float]
    facts: Facts
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """A figure over time. `better` says which way is good; `values` belong to `samples`, one by one."""

    key: str
    title: str
    better: str
    samples: tuple[Sample, ...]
    values: tuple[float, ...]
    stretches: tuple[Stretch, ...]

    @property
    def steps(self) -> list[Step]:
        return find_steps(self.stretches)

    def text(self, value: float) -> str:
        """Write a figure of this series."""
        return number(value) if self.key == BOUNDARY else bytes_text(int(value))


@dataclass(frozen=True, slots=True)
class VersionMark:
    """From this run on something had another version; numbered as on the charts."""

    number: int
    sample: Sample
    changes: tuple[tuple[str, str, str], ...]


BOUNDARY, PEAK = "boundary", "peak"
METRICS = (BOUNDARY, PEAK)


def sample_of(run: TrendRun, probes: Sequence[ProbeRow], carried_probes: int) -> Sample:
    """Read one run with its measured probes."""
    device = DeviceFacts.from_dict(dict(run.device_facts))
    return Sample(
        run_id=run.pk,
        at=run.finished_at,
        largest_batch_size=run.largest_batch_size,
        memory=memory_points(probes),
        facts=environment_facts(device, run.environment, carried_probes),
        left_out=_why_left_out(run),
    )


def series_of(samples: Iterable[Sample]) -> list[Series]:
    """Follow the boundary, and the peak at one batch size; those with no figure at all are left out."""
    usable = [sample for sample in samples if not sample.left_out]
    size = followed_batch_size(usable)
    bounded = [sample for sample in usable if sample.largest_batch_size]
    peaked = [sample for sample in usable if size in sample.memory]
    both = (
        _series(BOUNDARY, "Largest batch size", "higher", bounded, lambda s: float(s.largest_batch_size or 0)),
        _series(PEAK, f"Peak memory at batch {size:,}", "lower", peaked, lambda s: s.memory[size or 0])
        if size is not None
        else None,
    )
    return [series for series in both if series and series.values]


def followed_batch_size(samples: Sequence[Sample]) -> int | None:
    """Choose the largest batch size that all of them measured; where there is none, of those that most measured."""
    counts = Counter(size for sample in samples for size in sample.memory)
    return max(counts, key=lambda size: (counts[size], size), default=None)


def version_marks(samples: Sequence[Sample]) -> list[VersionMark]:
    """Where a version changed from one run to the next, oldest first."""
    marks: list[VersionMark] = []
    for before, after in pairwise(samples):
        changes = tuple(change for change in changed(before.facts, after.facts) if change[0] in VERSIONED)
        if changes:
            marks.append(VersionMark(len(marks) + 1, after, changes))
    return marks


def _series(key: str, title: str, better: str, samples: Sequence[Sample], read: Any) -> Series:
    values = tuple(map(read, samples))
    stretches = find_stretches(values, grain=1 if key == BOUNDARY else 0)
    return Series(key, title, better, tuple(samples), values, tuple(stretches))


def _why_left_out(run: TrendRun) -> str:
    """Return why a run is not a point of the series: its limit is not certified, or others used the card."""
    if run.is_shared:
        return "other processes used the card"
    return "" if run.certified else "its limit is not certified"
