"""How trainings on several GPUs scale: how much of one GPU's speed alone each of theirs is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from analysis.formatting import NOT_MEASURED
from analysis.lists.comparison.compared_run import ComparedRun, Range
from analysis.lists.comparison.metrics import Cell, MetricRow, metric_rows
from engine.settings.catalog import WORKLOADS
from engine.settings.rank_settings import OF_SEVERAL_GPUS
from engine.settings.setting import Role
from engine.settings.spec import DEFAULTS, SETTINGS

_OF_TRAINING = [
    name
    for name, each in SETTINGS.items()
    if each.role in (Role.TRAINING, Role.WORKLOAD) and name not in OF_SEVERAL_GPUS
]


def scaling_rows(subjects: Sequence[ComparedRun]) -> list[MetricRow]:
    """Return the row of the efficiency; none where nothing trained on several GPUs."""
    if all(_ranks(subject) == 1 for subject in subjects):
        return []
    cells = tuple(_cell(subject, subjects) for subject in subjects)
    return [MetricRow("scaling_efficiency", "Scaling efficiency", "derived", cells)]


def efficiency(several: ComparedRun, alone: ComparedRun) -> Range | None:
    """Return the speed per GPU as a share of one GPU's alone, at the largest size timed in both; else None."""
    one, other = several.outcome, alone.outcome
    if one is None or other is None:
        return None
    size = max(set(one.speed_intervals) & set(other.speed_intervals), default=None)
    if size is None:
        return None
    (low, high), (low_alone, high_alone) = one.speed_intervals[size], other.speed_intervals[size]
    return low / one.ranks / high_alone, high / one.ranks / low_alone


def _cell(subject: ComparedRun, subjects: Sequence[ComparedRun]) -> Cell:
    if _ranks(subject) == 1:
        return Cell("–", None, None)
    alone = (other for other in subjects if _ranks(other) == 1 and _is_same_training(subject, other))
    found = next((share for other in alone if (share := efficiency(subject, other))), None)
    if found is None:
        return Cell(NOT_MEASURED, None, None)
    low, high = found
    return Cell(f"{low * 100:.0f} to {high * 100:.0f} %", None, math.sqrt(low * high), found)


def _is_same_training(one: ComparedRun, other: ComparedRun) -> bool:
    is_of_catalogue = not one.runs_own_code and not other.runs_own_code  # of an own script no setting is known
    return is_of_catalogue and one.place == other.place and _settings(one) == _settings(other)


def _ranks(subject: ComparedRun) -> int:
    return subject.outcome.ranks if subject.outcome else 1


def _settings(subject: ComparedRun) -> dict[str, Any]:
    spec = subject.spec
    settings = {name: spec.get(name) or DEFAULTS.get(name) for name in _OF_TRAINING}
    if workload := WORKLOADS.get(str(spec.get("model"))):
        settings[workload.input_field] = spec.get(workload.input_field) or workload.default_input_size
    return {"model": spec.get("model"), **settings}


def figure_rows(subjects: Sequence[ComparedRun], baseline: ComparedRun | None) -> list[MetricRow]:
    return [*metric_rows(subjects, baseline), *scaling_rows(subjects)]
