"""Tables of runs: the history, and the short ones of other pages. From columns of the run alone."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from analysis.charts.sparkline import sparkline
from analysis.formatting import ago, bytes_text, duration, rate, round_bytes, usd, usd_range
from analysis.lists.runs.columns import Column
from analysis.models import ALL_GPUS, Run, State
from analysis.presentation.estimate_summary import WITH_MARGIN
from analysis.presentation.kinds import presentation_of
from analysis.presentation.kinds.presentation import BATCH_SIZES
from analysis.presentation.labels import Chip
from analysis.presentation.run_rows import HistoryRow
from engine.settings.step_settings import OPTIMIZER_LABELS

ABSENT = "–"
_MARKUP = re.compile(r"<[^>]*>")
"""The tags of a cell, all written by `format_html`: a parser takes forty times as long, for 500 cells a page."""


def run_table(rows: Iterable[HistoryRow], columns: tuple[Column, ...]) -> dict[str, Any]:
    """Return the heads and the lines of a short table, with the columns that some line fills."""
    found = lines(rows, columns)
    filled = filled_columns(found, columns)
    return {"heads": [{"column": column} for column in filled], "lines": with_columns(found, filled)}


def lines(
    rows: Iterable[HistoryRow], columns: tuple[Column, ...], *, tells_names: bool = False
) -> list[dict[str, Any]]:
    """Return a line of each run; the names and tags that people gave are told in the history, never to guests."""
    keys = {column.key for column in columns} | (set() if tells_names else {"name", "tags"})
    return [_line(row, keys) | {"cells": [_cell(row, column) for column in columns[1:]]} for row in rows]


def filled_columns(shown: Sequence[Mapping[str, Any]], columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Leave out the columns that no line fills: their width goes to the settings."""
    if not shown:
        return columns
    filled = {cell["column"] for line in shown for cell in line["cells"] if cell["content"] != ABSENT}
    return (columns[0], *(column for column in columns[1:] if column in filled))


def with_columns(shown: Iterable[dict[str, Any]], columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    return [line | {"cells": [cell for cell in line["cells"] if cell["column"] in columns]} for line in shown]


def has_line(run: Run) -> bool:
    kind = presentation_of(run)
    is_compared = kind.compared_by == BATCH_SIZES and not kind.not_compared
    return run.state == State.FINISHED and run.gpu != ALL_GPUS and is_compared


def _line(row: HistoryRow, without: set[str]) -> dict[str, Any]:
    title = row.run.name if row.run.name and "name" not in without else row.model_name
    return {
        "run": row.run,
        "kind": row.kind,
        "title": title,
        "settings": row.settings if title == row.model_name else f"{row.model_name} · {row.settings}",
        "tags": [tag.name for tag in row.run.tags.all()] if "tags" not in without else [],
        "origin": None if "origin" in without else row.origin,
    }


def _cell(row: HistoryRow, column: Column) -> dict[str, Any]:
    """Return a cell: a missing value is a dash in the table, and left out of the card on a phone.

    `label` is what the card calls it, which has no head of the column; `title` the whole text of a cell that is cut,
    empty for a picture.
    """
    content = _CONTENTS[column.key](row)
    names = [f"of-{column.key}", *(["number"] if column.is_figure else []), *([] if content else ["absent"])]
    return {
        "column": column,
        "content": content or ABSENT,
        "label": _label(row, column),
        "css_class": " ".join(names),
        "title": " ".join(html.unescape(_MARKUP.sub("", content)).split()),
    }


def _label(row: HistoryRow, column: Column) -> str:
    if column.key == "recommended" and row.kind.is_predicted:  # an estimate recommends nothing
        return WITH_MARGIN
    return "Estimated" if column.key == "largest" and row.cards else column.title


def _chip(chip: Chip, turn: str) -> str:
    label = '<span class="chip {}"><span aria-hidden="true">{}</span> {}</span>{}'
    return format_html(label, chip.css_class, chip.icon, chip.word, _small(turn) if turn else "")


def _largest(row: HistoryRow) -> str:
    run = row.run
    if row.does_not_fit:
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
    used, limit = row.kind.used_bytes(row.run), row.run.limit_bytes
    if used is None:
        return ""
    return format_html("{}{}", bytes_text(used), _small(f"of {round_bytes(limit)}")) if limit else bytes_text(used)


def _used(row: HistoryRow) -> str:
    """Draw the share of the limit that is used."""
    used, limit = row.kind.used_bytes(row.run), row.run.limit_bytes
    if not used or not limit:
        return ""
    bar = '<rect class="used" width="{0}" height="100%"/>'
    picture = f'<svg class="track-small" role="img" aria-label="{{0}} of {{1}}">{bar}</svg>'
    return format_html(picture, f"{min(1.0, used / limit) * 100:.1f}%", round_bytes(limit))


def _unused(row: HistoryRow) -> str:
    """Write the memory that today's batch size leaves unused, and its share: "624.0 MiB 60.9 %"."""
    unused = row.run.current_waste_bytes
    return "" if unused is None else _with_interval(bytes_text(unused), row.unused_share)


def _created(row: HistoryRow) -> str:
    took = "" if row.took_seconds is None else _small(f"took {duration(row.took_seconds)}")
    return format_html("{} {}", ago(row.run.created_at), took)


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
    "state": lambda row: _chip(row.state_chip, row.turn),
    "outcome": lambda row: _chip(row.chip, row.turn),
    "kind": lambda row: row.run.published_kind,
    "model": lambda row: row.model_name,
    "gpu": lambda row: row.device_name,
    "place": _place,
    "origin": lambda row: row.origin or "measured here",
    "precision": lambda row: row.run.precision,
    "optimizer": lambda row: OPTIMIZER_LABELS.get(row.run.optimizer, row.run.optimizer),
    "today": lambda row: "" if row.run.current_batch_size is None else f"{row.run.current_batch_size:,}",
    "answer": lambda row: row.answer,
    "largest": _largest,
    "recommended": _recommended,
    "speedup": lambda row: _with_interval(row.speedup, row.speedup_interval),
    "samples": _figure(rate, "recommended_samples_per_second"),
    "memory": _memory,
    "used": _used,
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
