"""Links from a run to its trend, and cells with the runs that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import template
from django.urls import reverse

from analysis.models import Run, State
from analysis.runs.columns.series import SeriesKey

register = template.Library()


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
