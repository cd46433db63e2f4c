"""The charts of one run: peak memory and speed by batch size, with the sizes of the result marked, and its rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from analysis.charts.axes import Axis, batch_axis, bytes_axis, rate_axis
from analysis.charts.plots import (
    RING,
    Plot,
    PlotPoint,
    PointLabel,
    ReferenceLine,
    SeriesStyle,
    Trace,
    table_of,
)
from analysis.formatting import bytes_text, rate, rate_range, round_bytes
from engine.facts.result import Outcome, Probe
from engine.facts.speed_rounds import SpeedRound, Stage
from engine.facts.stats import decisive_probes
from engine.questions.documents.estimated import EstimatedCard

Points = dict[int, float]
"""A figure by batch size, in rising order."""
Intervals = Iterable[tuple[int, float, float]]
"""(batch size, low, high)."""
Roles = Mapping[str, int | None]
"""The recommended, the fastest, the largest and the current batch size."""

_MEMORY, _ALLOCATED = SeriesStyle("line-memory"), SeriesStyle("line-allocated")
_SPEED, _ESTIMATED = SeriesStyle("line-speed"), SeriesStyle("line-estimated", RING)


def memory_points(probes: Iterable[Probe]) -> Points:
    return _points(probes, lambda probe: probe.memory_bytes)


def speed_points(probes: Iterable[Probe]) -> Points:
    return _points(probes, lambda probe: probe.samples_per_second)


def unsteady_sizes(probes: Iterable[Probe]) -> frozenset[int]:
    return frozenset(size for size, probe in decisive_probes(probes).items() if probe.timing_is_steady is False)


def memory_plot(
    probes: Sequence[Probe], *, limit_bytes: int | None, roles: Roles, estimate: EstimatedCard | None = None
) -> Plot | None:
    held = memory_points(probes)
    if not held:
        return None
    refused = [size for size, probe in decisive_probes(probes).items() if probe.outcome is Outcome.OUT_OF_MEMORY]
    top = limit_bytes or max(held.values())
    is_reserved = any(probe.peak_reserved_bytes is not None for probe in probes)
    crosses = tuple(PlotPoint(size, top, f"batch {size:,}: out of memory") for size in refused)
    main = Trace("Reserved from the device" if is_reserved else "Peak memory", _MEMORY, memory_dots(held), crosses)
    traces = [main]
    if is_reserved:
        allocated = _points(probes, lambda probe: probe.peak_allocated_bytes)
        traces.insert(0, Trace("Allocated by tensors", _ALLOCATED, memory_dots(allocated, word=" allocated")))
    if estimate is not None:  # rings, drawn over the dots that they foretold
        traces += _estimated(estimate, {*held, *refused})
    heights = [top, *(dot.y for trace in traces for dot in trace.dots)]
    refusal = [PointLabel(size, top, f"{size:,} out of memory", "label-refused") for size in refused[:1]]
    return Plot(
        key="memory",
        title="Peak memory by batch size",
        sentence=_memory_sentence(held, refused, limit_bytes),
        x=batch_axis(_sizes(traces), is_log=True),
        y=bytes_axis(heights, is_log=False),
        traces=tuple(traces),
        table=table_of(traces, "Batch", bytes_text, _notes(roles)),
        levels=(ReferenceLine(limit_bytes, f"limit {round_bytes(limit_bytes)}"),) if limit_bytes else (),
        labels=(*refusal, *_answer(held, roles, bytes_text)),
    )


def speed_plot(probes: Sequence[Probe], *, roles: Roles, intervals: Intervals = ()) -> Plot | None:
    speeds, unsteady = speed_points(probes), unsteady_sizes(probes)
    if not speeds:
        return None
    known = {size: (low, high) for size, low, high in intervals}
    dots = speed_dots(speeds, known, unsteady)
    main = Trace("Samples per second", _SPEED, dots)
    sure = speeds if len(known) < 2 else {size: speed for size, speed in speeds.items() if size in known}
    first, best = min(sure), max(sure, key=lambda size: sure[size])
    sentence = (
        f"Speed goes from {rate(speeds[first])} samples per second at batch {first:,} "
        f"to {rate(speeds[best])} at batch {best:,}, the highest measured."
    )
    sentence += " The bars are 95 % confidence intervals." if known else ""
    sentence += " Hollow points were timed once or not steady: they may be off." if main.has_hollow else ""
    return Plot(
        key="throughput",
        title="Speed by batch size",
        sentence=sentence,
        x=batch_axis(_sizes([main]), is_log=True),
        y=rate_axis(speed_heights(dots), is_log=False),
        traces=(main,),
        table=table_of([main], "Batch", rate, _notes(roles)),
        labels=_answer(speeds, roles, lambda value: f"{rate(value)} samples/s"),
    )


def speed_dots(
    speeds: Points, intervals: Mapping[int, tuple[float, float]], unsteady: frozenset[int], name: str = ""
) -> tuple[PlotPoint, ...]:
    """Make a point for each size, with its interval; `name` goes before its text.

    A size timed once, in passing, may be far off: beside two sizes with an interval it is hollow, and no line passes.
    """
    dots: list[PlotPoint] = []
    has_line_of_sure = len(intervals) > 1
    for size, speed in speeds.items():
        text, interval = f"{name}batch {size:,}: {rate(speed)} samples/s", intervals.get(size)
        text += f" ({rate_range(*interval)})" if interval else ""
        text += ", not steady" if size in unsteady else ""
        is_single = has_line_of_sure and interval is None
        text += ", timed once" if is_single and size not in unsteady else ""
        is_hollow = is_single or size in unsteady
        is_joined = not dots or dots[-1].is_on_line
        dots.append(PlotPoint(size, speed, text, interval, is_hollow, is_on_line=not is_single, is_joined=is_joined))
    return tuple(dots)


def speed_heights(dots: Iterable[PlotPoint]) -> list[float]:
    return [height for dot in dots for height in (dot.y, *(dot.interval or ()))]


def _points(probes: Iterable[Probe], read: Callable[[Probe], float | None]) -> Points:
    """Return a figure of each size that fits and has it, in rising order."""
    found = ((size, read(probe)) for size, probe in decisive_probes(probes).items() if probe.fits)
    return {size: value for size, value in found if value is not None}


def memory_dots(points: Points, name: str = "", word: str = "") -> tuple[PlotPoint, ...]:
    return tuple(
        PlotPoint(size, held, f"{name}batch {size:,}: {bytes_text(held)}{word}") for size, held in points.items()
    )


def _estimated(estimate: EstimatedCard, known: set[int]) -> list[Trace]:
    """Plot the estimates of sizes expected to fit, in the range of the measurement.

    Two are joined only where nothing was measured between them: memory is not linear in the batch size.
    """
    shown = [point for point in estimate.points if point.fits or point.batch_size <= max(known)]
    dots, before = [], 0
    for point in shown:
        size, held = point.batch_size, float(point.memory_bytes)
        is_joined = not any(before < other < size for other in known)
        dots.append(PlotPoint(size, held, f"batch {size:,}: {bytes_text(held)} estimated", is_joined=is_joined))
        before = size
    return [Trace("Estimated before", _ESTIMATED, tuple(dots), is_predicted=True)] if dots else []


ROLE_WORDS = {"recommended": "recommended", "fastest": "fastest", "largest": "largest", "current": "today"}


def _marks(roles: Roles) -> list[tuple[int, str, bool]]:
    marks = []
    for size in dict.fromkeys(size for size in roles.values() if size is not None):
        first, *others = [word for role, word in ROLE_WORDS.items() if roles.get(role) == size]
        marks.append((size, ", ".join((f"{first} {size:,}", *others)), first == "recommended"))
    return sorted(marks, key=lambda mark: not mark[2])


def _answer(points: Points, roles: Roles, text: Callable[[float], str]) -> tuple[PointLabel, ...]:
    labels = []
    for size, words, is_recommended in _marks(roles):
        if size in points:
            classes = ("label-use", "ring ring-use") if is_recommended else ("label-mark", "ring")
            labels.append(PointLabel(size, points[size], words, *classes))
    last = max(points)
    if last not in {label.x for label in labels}:
        labels.append(PointLabel(last, points[last], f"{last:,}: {text(points[last])}"))
    return tuple(labels)


def _sizes(traces: Iterable[Trace]) -> list[int]:
    return sorted({int(dot.x) for trace in traces for dot in (*trace.dots, *trace.crosses)})


def _notes(roles: Roles) -> dict[int, str]:
    return {size: words for size, words, _ in _marks(roles)}


def _memory_sentence(points: Points, refused: Sequence[int], limit_bytes: int | None) -> str:
    first, last = min(points), max(points)
    low, high = bytes_text(points[first]), bytes_text(points[last])
    parts = [f"Peak memory goes from {low} at batch {first:,} to {high} at batch {last:,}."]
    if limit_bytes is not None:
        parts.append(f"The limit is {round_bytes(limit_bytes)}.")
    if refused:
        parts.append(f"Batch {refused[0]:,} ran out of memory.")
    return " ".join(parts)


def rounds_plot(rounds: Sequence[SpeedRound], today: int) -> Plot | None:
    speeds = [
        {b.batch_size: b.batch_size * b.micro_batches / b.step_seconds for b in each.blocks if b.step_seconds > 0}
        for each in rounds
        if each.stage is Stage.EVALUATION and each.left_out is None
    ]
    others = {size for each in speeds for size in each} - {today}
    if len(speeds) < 2 or len(others) != 1 or any(len(each) != 2 for each in speeds):
        return None
    other = others.pop()
    ahead = sum(each[other] > each[today] for each in speeds)
    traces = []
    for place, size in enumerate((today, other)):
        dots = tuple(
            PlotPoint(number, each[size], f"round {number}, batch {size:,}: {rate(each[size])} samples/s")
            for number, each in enumerate(speeds, start=1)
        )
        name = f"batch {size:,}{', today' if size == today else ''}"
        traces.append(Trace(name, SeriesStyle.of(1 - place), dots, has_line=False))
    ticks = tuple((float(number), str(number)) for number in range(1, len(speeds) + 1))
    return Plot(
        key="rounds",
        title="Speed in each round",
        sentence=f"{other:,} was faster than {today:,} in {ahead} of {len(speeds)} rounds.",
        x=Axis("round", 0.5, len(speeds) + 0.5, ticks),
        y=rate_axis([speed for each in speeds for speed in each.values()], is_log=True),
        traces=tuple(traces),
        table=table_of(traces, "Round", rate),
    )
