"""The settings of runs that lists filter on, one row for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from analysis.models import Run, RunSetting
from engine.settings.catalog.stored_workload import stored_workload

FILTERED = (
    *("current_batch_size", "memory_limit_bytes", "sequence_length", "image_size"),
    *("gradient_checkpointing", "mode", "pretrained"),
)
"""Precision and optimizer have columns of their own."""


def run_settings_keep(*, run: Run) -> None:
    """Store a run's settings (of a reported one its result's); the batch size of a script is only in its column."""
    RunSetting.objects.filter(run=run).delete()
    settings = settings_of({**run.spec, "current_batch_size": run.current_batch_size})
    RunSetting.objects.bulk_create(RunSetting(run=run, setting=setting) for setting in settings)


def settings_of(spec: Mapping[str, Any]) -> list[str]:
    values = {name: spec.get(name) for name in FILTERED}
    if (workload := stored_workload(spec)) is not None and values[workload.input_field] is None:
        values[workload.input_field] = workload.default_input_size
    return [_setting(name, value) for name, value in values.items() if value is not None]


def rows_with(name: str, value: Any) -> QuerySet[RunSetting]:
    return RunSetting.objects.filter(setting=_setting(name, value))


def _setting(name: str, value: Any) -> str:
    return f"{name}={value}"
