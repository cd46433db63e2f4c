"""All figures of compared runs, for the page and the API."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.lists.comparison.compared_run import ComparedRun
from analysis.lists.comparison.metrics import MetricRow, metric_rows
from analysis.lists.comparison.scaling import scaling_rows


def figure_rows(subjects: Sequence[ComparedRun], baseline: ComparedRun | None) -> list[MetricRow]:
    return [*metric_rows(subjects, baseline), *scaling_rows(subjects)]
