"""The lines of a run's log as HTML: hundreds of lines in a template loop would dominate a page's time."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from analysis.models import RunLog
from analysis.presentation.formatting import clock

register = template.Library()
_LINE = '<li class="log-{}"><time datetime="{}">{}</time>{}</li>\n'


@register.filter
def log_items(lines: Iterable[RunLog]) -> SafeString:
    """Render each line as a list item with its level, exact time and text."""
    parts = ((line.level, line.recorded_at.isoformat(), clock(line.recorded_at), line.message) for line in lines)
    return format_html_join("", _LINE, parts)
