"""The cells of a line of the history, from columns alone."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from analysis.lists.runs.columns import Column
from analysis.models import ALL_GPUS, Run, State
from analysis.presentation.charts.sparkline import sparkline
from analysis.presentation.estimate_summary import WITH_MARGIN
from analysis.presentation.formatting import (
    ago,
    bytes_text,
    duration,
    rate,
    round_bytes,
    usd,
    usd_range,
)
from analysis.presentation.kinds import presentation_of
from analysis.presentation.kinds.presentation import BATCH_SIZES, Presentation
from analysis.presentation.run_rows import HistoryRow, history_rows
from analysis.runs.queue.forecast import QueuePosition
from engine.results.result import Reason
from engine.settings.step_settings import OPTIMIZER_LABELS

ABSENT = "–"
_MARKUP = re.compile(r"<[^>]*>")
"""The tags of a cell, all written by `format_html`: a parser takes forty times as long, for 500 cells a page."""


@dataclass(frozen=True, slots=True)
class LineCell:
    """One value of a line; a missing one is a dash in the table, and is left out of the card on a phone."""

    column: Column
    content: str
    is_absent: bool
    label: str
    """What the card calls it, which has no head of the column."""

    @property
    def css_class(self) -> str:
        names = [f"of-{self.column.key}"]
        names += ["number"] if self.column.is_figure else []
        names += ["absent"] if self.is_absent else []
        return " ".join(names)

    @property
    def title(self) -> str:
        """Return the whole text for the tooltip of a cut cell; empty for a picture and a missing value."""
        return "" if self.is_absent else " ".join(html.unescape(_MARKUP.sub("", self.content)).split())


@dataclass(frozen=True, slots=True)
class RunLine:
    run: Run
    kind: Presentation
    title: str
    settings: str
    tags: tuple[str, ...]
    origin: str | None
    cells: tuple[LineCell, ...]

    def with_columns(self, columns: tuple[Column, ...]) -> RunLine:
        return replace(self, cells=tuple(cell for cell in self.cells if cell.column in columns))


def lines(runs: Iterable[Run], positions: Mapping[int, QueuePosition], columns: tuple[Column, ...]) -> list[RunLine]:
    keys = {column.key for column in columns}
    return [_line(row, columns[1:], keys) for row in history_rows(runs, positions)]


def filled_columns(shown: Sequence[RunLine], columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Leave out the columns that no line fills: their width goes to the settings."""
    if not shown:
        return columns
    filled = {cell.column for line in shown for cell in line.cells if not cell.is_absent}
    return (columns[0], *(column for column in columns[1:] if column in filled))


def has_line(run: Run) -> bool:
    kind = presentation_of(run)
    is_compared = kind.compared_by == BATCH_SIZES and not kind.not_compared
    return run.state == State.FINISHED and run.gpu != ALL_GPUS and is_compared


def _line(row: HistoryRow, columns: tuple[Column, ...], keys: set[str]) -> RunLine:
    run = row.run
    origin = None if "origin" in keys else row.origin
    tags = () if "tags" in keys else tuple(tag.name for tag in run.tags.all())
    title = run.name if run.name and "name" not in keys else row.model_name
    settings = row.settings if title == row.model_name else f"{row.model_name} · {row.settings}"
    return RunLine(run, row.kind, title, settings, tags, origin, tuple(_cell(row, column) for column in columns))


def _cell(row: HistoryRow, column: Column) -> LineCell:
    content = _CONTENTS[column.key](row)
    return LineCell(column, content or ABSENT, not content, _label(row, column))


def _label(row: HistoryRow, column: Column) -> str:
    if column.key == "recommended" and row.kind.is_predicted:  # an estimate recommends nothing
        return WITH_MARGIN
    return "Estimated" if column.key == "largest" and row.cards else column.title


def _state(row: HistoryRow) -> str:
    chip = row.state_chip
    label = '<span class="chip {}"><span aria-hidden="true">{}</span> {}</span>{}'
    return format_html(label, chip.css_class, chip.icon, chip.word, _small(row.turn) if row.turn else "")


def _largest(row: HistoryRow) -> str:
    run = row.run
    if run.boundary_reason == Reason.DOES_NOT_FIT:
        return "does not fit"
    if row.cards:
        return format_html('<span title="Your batch size today would fit there with the margin">{}</span>', row.cards)
    if row.kind.is_predicted and run.estimated_largest_batch_size is not None:
        bound = "≥ " if row.estimated_bound == "≥" else ""
        return format_html("{}{}", f"{bound}{run.estimated_largest_batch_size:,}", _small("estimated"))
    if run.largest_batch_size is None:
        return ""
    if run.certified:
        return f"{run.largest_batch_size:,}"
    return format_html('<span title="Not certified: larger sizes may fit">≥ </span>{}', f"{run.largest_batch_size:,}")


def _recommended(row: HistoryRow) -> str:
    run = row.run
    if row.kind.is_predicted and run.estimated_safe_batch_size:
        size = f"{run.estimated_safe_batch_size:,}"
        return format_html('<span title="Estimated, not measured">≈ </span>{}{}', size, _small("with margin"))
    return "" if run.recommended_batch_size is None else f"{run.recommended_batch_size:,}"


def _curve(row: HistoryRow) -> str:
    run = row.run
    points = run.memory_curve or []
    if len(points) < 2:
        return ""
    (small, least), (large, most) = points[0], points[-1]
    label = f"{bytes_text(least)} at batch {small}, {bytes_text(most)} at {large}"
    return sparkline(points, run.limit_bytes, label)


def _saving(row: HistoryRow) -> str:
    run = row.run
    is_plain = run.saving_per_year_usd is None or row.keeps_today  # a bound is an end of its interval
    interval = "" if is_plain else usd_range(run.saving_per_year_usd_low, run.saving_per_year_usd_high)
    return _with_interval(row.saving, interval)


def _with_interval(value: str, interval: str) -> str:
    return format_html("{} {}", value, _small(interval)) if interval else value


def _memory(row: HistoryRow) -> str:
    run = row.run
    if run.recommended_memory_bytes is None:
        return ""
    used = bytes_text(run.recommended_memory_bytes)
    return format_html("{}{}", used, _small(f"of {round_bytes(run.limit_bytes)}")) if run.limit_bytes else used


def _unused(row: HistoryRow) -> str:
    """Write the memory that today's batch size leaves unused, and its share: "624.0 MiB 60.9 %"."""
    unused = row.run.current_waste_bytes
    return "" if unused is None else _with_interval(bytes_text(unused), row.unused_share)


def _created(row: HistoryRow) -> str:
    took = "" if row.took_seconds is None else _small(f"took {duration(row.took_seconds)}")
    return format_html("{}{}", ago(row.run.created_at), took)


def _place(row: HistoryRow) -> str:
    device = row.run.device or row.run.requested_device
    return f"{device.host} {device.device}" if device else ""


def _tags(row: HistoryRow) -> str:
    return format_html_join(" ", '<span class="chip">{}</span>', ((tag.name,) for tag in row.run.tags.all()))


def _small(text: str) -> SafeString:
    return format_html('<span class="settings">{}</span>', text)


def _figure(text: Callable[[float | None], str], path: str) -> Callable[[HistoryRow], str]:

    def content(row: HistoryRow) -> str:
        value = getattr(row.run, path)
        return "" if value is None else text(value)

    return content


_CONTENTS: dict[str, Callable[[HistoryRow], str]] = {
    "state": _state,
    "kind": lambda row: row.run.published_kind,
    "model": lambda row: row.model_name,
    "gpu": lambda row: row.device_name,
    "place": _place,
    "origin": lambda row: row.origin or "measured here",
    "precision": lambda row: row.run.precision,
    "optimizer": lambda row: OPTIMIZER_LABELS.get(row.run.optimizer, row.run.optimizer),
    "largest": _largest,
    "recommended": _recommended,
    "speedup": lambda row: _with_interval(row.speedup, row.speedup_interval),
    "samples": _figure(rate, "recommended_samples_per_second"),
    "memory": _memory,
    "unused": _unused,
    "curve": _curve,
    "saving": _saving,
    "cost": _figure(usd, "cost_per_million_samples_usd"),
    "user": lambda row: row.run.requested_by.get_username() if row.run.requested_by else "",
    "name": lambda row: row.run.name,
    "tags": _tags,
    "note": lambda row: row.run.note[:200],
    "created": _created,
    "ended": lambda row: ago(row.run.finished_at) if row.run.finished_at else "",
}
