"""Indexes for a fast history of many runs: one for each sortable column.

A text column's index ends in the date, so it also serves a filter in the default order. A figure's index leaves
out the runs without that figure: they are read separately (see `ordering`).
"""

from __future__ import annotations

from django.db.models import F, Index, Q, Value
from django.db.models.functions import Replace

from analysis.models.run_states import State
from engine.questions.kinds import RunKind

_TEXTS = {
    "device_name": "run_by_gpu",
    "precision": "run_by_precision",
    "optimizer": "run_by_optimizer",
    "requested_by": "run_of_person",
    "device": "run_on_device",
    "name": "run_by_name",
}
_FIGURES = {
    "largest_batch_size": "run_by_largest",
    "recommended_batch_size": "run_by_recommended",
    "claimed_speedup": "run_by_speedup",
    "recommended_samples_per_second": "run_by_samples",
    "recommended_memory_bytes": "run_by_memory",
    "claimed_saving_per_year_usd": "run_by_saving",
    "cost_per_million_samples_usd": "run_by_cost",
}

HISTORY_INDEXES = (
    *(Index(fields=(path, "-created_at"), name=name) for path, name in _TEXTS.items()),
    # for `kind__published`, by which lists filter and sort
    Index(
        Replace("kind", Value(RunKind.COMMAND.value), Value(RunKind.MEASUREMENT.value)),
        F("created_at").desc(),
        name="run_by_kind",
    ),
    *(
        Index(fields=(path, "id"), name=name, condition=Q(**{f"{path}__isnull": False}))
        for path, name in _FIGURES.items()
    ),
    Index(fields=("-updated_at",), name="run_by_update"),
    # what a device runs now: without it SQLite walks all that the device ever ran, seconds with a million runs
    Index(fields=("device", "state"), name="run_on_device_by_state"),
    Index(fields=("certified", "-created_at"), name="run_by_certificate"),
    Index(fields=("-created_at",), name="run_baselines", condition=Q(is_baseline=True)),
    Index(fields=("-created_at",), name="run_shared", condition=Q(is_shared=True)),
    Index(fields=("-created_at",), name="run_reported", condition=~Q(reported_from="")),
    Index(fields=("deleted_at",), name="run_deleted", condition=Q(deleted_at__isnull=False)),
)
TREND_INDEX = Index(
    fields=("model", "device_name", "precision", "optimizer", "-finished_at"),
    condition=Q(state=State.FINISHED),
    name="run_trend",
)
"""Finds the newest runs of one series among a million others."""
