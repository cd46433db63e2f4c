"""The filters of the pages: texts of `formatting.py`, pictures of charts, cells and lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from django import template
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from analysis import formatting
from analysis.charts.drawing import draw, picture
from analysis.models import Run, RunLog, State
from analysis.runs.columns.series import SeriesKey
from engine.text.today import name_today

register = template.Library()
for name in (
    *("bytes_text", "round_bytes", "duration", "step_time", "rate", "factor", "percent", "round_percent", "share_text"),
    *("hours_text", "usd", "usd_closely", "millions", "number", "utc", "clock", "ago", "since", "seconds_after"),
):
    register.filter(name, getattr(formatting, name))
for each in (name_today, draw, picture):
    register.filter(each)
_FILES = {"css": '<link rel="stylesheet" href="{}">', "js": '<script src="{}" defer></script>'}
_LINE = '<li class="log-{}"><time datetime="{}">{}</time>{}</li>\n'


@register.simple_tag
def own_files(*names: str) -> SafeString:
    """Link the files that a page has beside those of every page: `{% own_files "run.css" "log.js" %}`."""
    kinds = [(name, name.rpartition(".")[2]) for name in names]
    links = [format_html(_FILES[kind], static(f"{kind}/{name}")) for name, kind in kinds]
    return format_html_join("\n", "{}", ((link,) for link in links))


@register.filter
def or_dash(text: str) -> str:
    """Write what is not measured as tables do."""
    return "–" if text == formatting.NOT_MEASURED else text


@register.filter
def breakable(text: str) -> SafeString:
    """Let a line end after the dots and underscores of a long name, and so not within one of its words."""
    return mark_safe(re.sub(r"(?<=[A-Za-z*])([._])(?=[\w*])", r"\1<wbr>", escape(text)))  # noqa: S308 - escaped


@register.filter
def trend_address(run: Run) -> str:
    """Return the address of the trend of a finished measurement; empty for any other run."""
    if not run.is_search or run.state != State.FINISHED or not run.device_name:
        return ""
    return reverse("analysis:trend") + SeriesKey.of_run(run.spec, run.device_name).address


@register.filter
def with_cells(heads: Sequence[Any], cells: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Pair each run with its cell of a row: on a phone a cell names its run."""
    return list(zip(heads, cells, strict=True))


@register.filter
def log_items(lines: Iterable[RunLog]) -> SafeString:
    """Render log lines as list items: hundreds of lines in a template loop would dominate a page's time."""
    parts = (
        (line.level, line.recorded_at.isoformat(), formatting.clock(line.recorded_at), line.message) for line in lines
    )
    return format_html_join("", _LINE, parts)
