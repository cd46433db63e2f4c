"""Errors of estimates, as text and as a plot: for one measurement, and for all of them by GPU and model. Pure."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from analysis.charts.axes import change_axis, time_axis
from analysis.charts.plots import Plot, PlotPoint, PointLabel, SeriesStyle, Table, Trace
from analysis.formatting import bytes_text
from analysis.models import Run
from analysis.presentation.labels import family_name, model_name, short_device_name
from engine.estimate.prior import memory_pair
from engine.facts.result import Reason
from engine.facts.stats import SAME_FRACTION, decisive_probes
from engine.questions.documents.estimated import EstimatedCard
from engine.questions.documents.measured import Measured

SAME = "the same"


@dataclass(frozen=True, slots=True)
class Beside:
    name: str
    estimated: str
    measured: str
    error_fraction: float | None
    batch_size: int | None = None
    """Whether the row is about the memory of one size."""
    is_too_high: bool = False
    """Whether a size was estimated where none fits, which has no error in percent."""

    @property
    def difference(self) -> str:
        return "too high" if self.is_too_high else describe_difference(self.error_fraction)


@dataclass(frozen=True, slots=True)
class Group:
    """Measured runs of one GPU and one family of models that had an estimate before."""

    gpu: str
    family: str
    runs: tuple[Run, ...]

    @property
    def points(self) -> list[tuple[dt.datetime, float, Run]]:
        """Return when each run ended, and by how much its peak memory was estimated wrongly, oldest first."""
        known = ((run.finished_at, run.estimate_peak_error, run) for run in self.runs)
        points = [(at, error, run) for at, error, run in known if at is not None and error is not None]
        return sorted(points, key=lambda point: point[0])

    @property
    def typical_peak_error(self) -> float:
        return median(abs(error) for _, error, _ in self.points)

    @property
    def worst_peak_error(self) -> float:
        return max((error for _, error, _ in self.points), key=abs)

    @property
    def worst_text(self) -> str:
        text = describe_difference(self.worst_peak_error)
        return "no error" if text == SAME else text

    @property
    def typical_boundary_error(self) -> float | None:
        known = [abs(run.estimate_boundary_error) for run in self.runs if run.estimate_boundary_error is not None]
        return median(known) if known else None

    @property
    def latest(self) -> dt.datetime:
        return self.points[-1][0]


def describe_difference(error_fraction: float | None) -> str:
    """0.008 -> "0.8 % over"; None -> "not comparable"."""
    if error_fraction is None:
        return "not comparable"
    if abs(error_fraction) < SAME_FRACTION:
        return SAME
    return f"{abs(error_fraction) * 100:.1f} % {'over' if error_fraction > 0 else 'under'}"


def groups_of(runs: Iterable[Run]) -> list[Group]:
    found: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        found[short_device_name(run.device_name), family_name(run.model)].append(run)
    groups = [Group(gpu, family, tuple(members)) for (gpu, family), members in found.items()]
    return sorted(groups, key=lambda group: (-len(group.runs), group.gpu, group.family))


def compare_to_estimate(estimate: EstimatedCard, result: Measured) -> list[Beside]:
    rows = [_boundary(estimate, result)]
    for size, probe in sorted(decisive_probes(result.probes).items()):
        point = estimate.at_batch_size(size)
        pair = memory_pair(point, probe) if point is not None and probe.fits else None
        if pair is not None:
            estimated, measured = map(bytes_text, pair)
            rows.append(Beside(f"Peak memory at batch {size:,}", estimated, measured, pair[0] / pair[1] - 1, size))
    return rows


def _boundary(estimate: EstimatedCard, result: Measured) -> Beside:
    """Compare the boundaries only where the measured one is certified by memory: any other is a lower bound."""
    estimated, measured = estimate.largest_batch_size, result.boundary.largest_batch_size
    is_known = result.boundary.certified and result.boundary.reason in (Reason.OUT_OF_MEMORY, Reason.DOES_NOT_FIT)
    error = None
    if is_known and measured:
        error = estimated / measured - 1
    elif is_known and measured == estimated:  # both say that nothing fits; else there is no ratio
        error = 0.0
    bound = "" if is_known or not measured else "at least "
    texts = _describe_size(estimated), f"{bound}{_describe_size(measured)}"
    return Beside("Largest batch size", *texts, error, is_too_high=is_known and measured == 0 and bool(estimated))


def _describe_size(size: int | None) -> str:
    if size is None:
        return "not known"
    return f"{size:,}" if size else "does not fit"


_TRACES = 8
"""As many traces as the palette has distinguishable colours; the table has all."""


def error_plot(groups: Sequence[Group]) -> Plot | None:
    """Plot the errors over time, one trace for each GPU and family of models."""
    shown = groups[:_TRACES]
    if not shown:
        return None
    traces = tuple(_trace(group, number) for number, group in enumerate(shown))
    dots = [dot for trace in traces for dot in trace.dots]
    points = [point for group in groups for point in group.points]
    _, worst, run = max(points, key=lambda point: abs(point[1]))
    runs = "1 measured run had" if len(points) == 1 else f"{len(points)} measured runs had"
    return Plot(
        key="errors",
        title="Estimated relative to measured peak memory",
        sentence=f"{runs} an estimate; the largest error has run {run.pk}: {describe_difference(worst)}.",
        x=time_axis(dot.x for dot in dots),
        y=change_axis((dot.y for dot in dots), title="estimate relative to measurement"),
        traces=traces,
        table=_table(points),
        labels=tuple(
            PointLabel(trace.dots[-1].x, trace.dots[-1].y, describe_difference(trace.dots[-1].y)) for trace in traces
        ),
    )


def _trace(group: Group, number: int) -> Trace:
    dots = tuple(
        PlotPoint(at.timestamp(), error, f"run {run.pk}: {describe_difference(error)}")
        for at, error, run in group.points
    )
    return Trace(f"{group.gpu}, {group.family}", SeriesStyle.of(number), dots, has_line=False)


def _table(points: Iterable[tuple[dt.datetime, float, Run]]) -> Table:
    rows = tuple(
        (
            *(f"run {run.pk}", f"{at:%Y-%m-%d %H:%M}", short_device_name(run.device_name), model_name(run.model)),
            *(describe_difference(error), describe_difference(run.estimate_boundary_error)),
            "calibrated" if run.estimate_is_calibrated else "not calibrated",
        )
        for at, error, run in sorted(points, key=lambda point: point[0], reverse=True)
    )
    return Table(("Run", "Finished (UTC)", "GPU", "Model", "Peak memory", "Largest batch size", "Card"), rows)
