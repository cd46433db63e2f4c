"""What a chart shows, before anything is drawn: its series, its limit, its marks and the sentence that reads it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from analysis.presentation.formatting import bytes_text, number, rate, round_bytes
from engine.result import Outcome, Purpose

Points = tuple[tuple[int, float], ...]
Intervals = tuple[tuple[int, float, float], ...]
"""(batch size, low, high) in rising order."""
Roles = Mapping[str, int | None]
"""Which batch size is the recommended, the fastest, the largest, the current one."""


class ProbeRow(Protocol):
    """What the pages read of a probe: an engine Probe, which is frozen, and a stored Measurement both have it."""

    @property
    def batch_size(self) -> int: ...
    @property
    def outcome(self) -> str: ...
    @property
    def purpose(self) -> str: ...
    @property
    def peak_allocated_bytes(self) -> int | None: ...
    @property
    def peak_reserved_bytes(self) -> int | None: ...
    @property
    def samples_per_second(self) -> float | None: ...
    @property
    def peak_phase(self) -> str | None: ...
    @property
    def failed_phase(self) -> str | None: ...
    @property
    def wall_seconds(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its name, its CSS class and (batch size, value) in rising order."""

    name: str
    css_class: str
    points: Points


@dataclass(frozen=True, slots=True)
class MarkedPoint:
    """A batch size of the answer on the line, with the words for it ("use 384, fastest")."""

    batch_size: int
    value: float
    text: str
    is_recommended: bool


@dataclass(frozen=True, slots=True)
class Curve:
    """A chart's whole content. `main` is the marked series; `limit` and `refused` are drawn where there are any."""

    key: str
    title: str
    sentence: str
    unit: str
    """What follows a figure whose text has no unit of its own."""
    main: Series
    others: tuple[Series, ...]
    marks: tuple[MarkedPoint, ...]
    limit: int | None
    refused: tuple[int, ...]
    value_text: Callable[[float | None], str]
    tick_text: Callable[[float], str]
    intervals: Intervals = ()
    """Around points of the main series; empty where none is known."""

    @property
    def series(self) -> tuple[Series, ...]:
        return (*self.others, self.main)

    @property
    def batch_sizes(self) -> list[int]:
        return sorted({size for line in self.series for size, _ in line.points} | set(self.refused))

    @property
    def rows(self) -> list[tuple[int, list[str], str]]:
        """The chart as a table: batch size, a figure per series, what happened."""
        by_series = [dict(line.points) for line in self.series]
        notes = {size: "fits" for size, _ in self.main.points}
        notes |= {mark.batch_size: mark.text for mark in self.marks}
        notes |= dict.fromkeys(self.refused, "out of memory")
        return [
            (
                size,
                [self.value_text(values.get(size)) for values in by_series],
                notes.get(size, "not tried"),
            )
            for size in self.batch_sizes
        ]


def memory_bytes(probe: ProbeRow) -> int | None:
    """What the training took from the device: reserved where an allocator reserves, else allocated."""
    return probe.peak_allocated_bytes if probe.peak_reserved_bytes is None else probe.peak_reserved_bytes


def memory_curve(probes: Sequence[ProbeRow], *, limit_bytes: int | None, roles: Roles) -> Curve | None:
    """Peak memory by batch size, or None where no probe that fits was measured."""
    main = Series("Peak memory", "line-memory", _points(probes, memory_bytes))
    if not main.points:
        return None
    others: tuple[Series, ...] = ()
    if any(probe.peak_reserved_bytes is not None for probe in probes):
        allocated = _points(probes, lambda probe: probe.peak_allocated_bytes)
        main = Series("Reserved from the device", "line-memory", main.points)
        others = (Series("Allocated by tensors", "line-allocated", allocated),)
    refused = _refused(probes)
    return Curve(
        key="memory",
        title="Peak memory by batch size",
        sentence=_memory_sentence(main.points, refused, limit_bytes),
        unit="",
        main=main,
        others=others,
        marks=_marks(main.points, roles),
        limit=limit_bytes,
        refused=refused,
        value_text=bytes_text,
        tick_text=round_bytes,
    )


def throughput_curve(probes: Sequence[ProbeRow], *, roles: Roles, intervals: Intervals = ()) -> Curve | None:
    """Samples per second by batch size, or None where no speed was measured."""
    main = Series("Samples per second", "line-speed", _points(probes, lambda probe: probe.samples_per_second))
    if not main.points:
        return None
    return Curve(
        key="throughput",
        title="Speed by batch size",
        sentence=_speed_sentence(main.points) + (" The bars are intervals of 95 %." if intervals else ""),
        unit=" samples/s",
        main=main,
        others=(),
        marks=_marks(main.points, roles),
        limit=None,
        refused=(),
        value_text=rate,
        tick_text=number,
        intervals=intervals,
    )


def _points(probes: Iterable[ProbeRow], read: Callable[[ProbeRow], float | None]) -> Points:
    """One point a size: the latest measured, but not a soak's, which repeats a size under other conditions."""
    points: dict[int, float] = {}
    for probe in probes:
        value = read(probe)
        is_repeat_in_a_soak = probe.purpose == Purpose.SOAK and probe.batch_size in points
        if probe.outcome == Outcome.FITS and value is not None and not is_repeat_in_a_soak:
            points[probe.batch_size] = value
    return tuple(sorted(points.items()))


def _refused(probes: Iterable[ProbeRow]) -> tuple[int, ...]:
    return tuple(sorted({probe.batch_size for probe in probes if probe.outcome == Outcome.OUT_OF_MEMORY}))


_ROLE_WORDS = {
    "recommended": "use {size}",
    "fastest": "fastest {size}",
    "largest": "largest {size}",
    "current": "today {size}",
}


def _marks(points: Points, roles: Roles) -> tuple[MarkedPoint, ...]:
    """One mark a size, its roles joined, so that two labels never fight for one point."""
    values, marks = dict(points), []
    for size in dict.fromkeys(size for size in roles.values() if size in values):
        held = [role for role in _ROLE_WORDS if roles.get(role) == size]
        words = [_ROLE_WORDS[held[0]].format(size=size), *("today" if role == "current" else role for role in held[1:])]
        marks.append(MarkedPoint(size, values[size], ", ".join(words), "recommended" in held))
    return tuple(marks)


def _memory_sentence(points: Points, refused: tuple[int, ...], limit_bytes: int | None) -> str:
    first, last = points[0], points[-1]
    parts = [
        f"Peak memory goes from {bytes_text(int(first[1]))} at batch {first[0]} "
        f"to {bytes_text(int(last[1]))} at batch {last[0]}."
    ]
    if limit_bytes is not None:
        parts.append(f"The limit is {round_bytes(limit_bytes)}.")
    if refused:
        parts.append(f"Batch {refused[0]} ran out of memory.")
    return " ".join(parts)


def _speed_sentence(points: Points) -> str:
    first, best = points[0], max(points, key=lambda point: point[1])
    return (
        f"Speed goes from {rate(first[1])} samples per second at batch {first[0]} "
        f"to {rate(best[1])} at batch {best[0]}, the fastest measured."
    )
