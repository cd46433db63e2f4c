"""Totals of all runs, for the home page. Read from columns, at most every ten seconds while the same runs are shown.

Adding up every run would count a workload as often as it was measured. So each model on each card, with each
setting, counts once, by its newest certified run, which the cells of the matrix name. People's own scripts have no
cells: each script on each device with each memory limit counts once, by its newest certified run.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.utils import timezone

from analysis.lists.use.unused import FIGURES, MeasuredSetting, Unused
from analysis.models import MatrixCell, Run, State
from analysis.presentation.labels import model_name
from analysis.runs.columns.matrix_cells import MEASURED

KEPT_SECONDS = 10
CACHE_KEY = "analysis.lists.totals"
SCRIPT_RUNS_MAX = 1_000
"""Newest runs of own scripts that are looked through: it bounds the time of the page, however many there are."""


@dataclass(frozen=True, slots=True)
class LabTotals:
    run_count: int
    setup_count: int
    sums: Unused
    as_of: datetime
    largest_saving: dict[str, Any] | None
    """The run that saves most, what it trains, and the batch size to use."""


def lab_totals(shown: Iterable[Run] = ()) -> LabTotals:
    """Return the totals that this process read last, while they are fresh and `shown` is unchanged."""
    seen = zlib.crc32(repr([(run.pk, run.state) for run in shown]).encode())
    totals: LabTotals | None = cache.get_or_set(f"{CACHE_KEY}.{seen}", lab_totals_read, KEPT_SECONDS)
    return lab_totals_read() if totals is None else totals


def lab_totals_read() -> LabTotals:
    """Read the totals by five statements, none of which opens a result."""
    measured = MatrixCell.objects.filter(kind=MEASURED).values_list("run", flat=True), _newest_of_scripts()
    columns = ("pk", "model", *FIGURES)
    rows = [row for ids in measured for row in Run.objects.filter(pk__in=ids).order_by().values(*columns)]
    setups = [MeasuredSetting.of(row, row["pk"]) for row in rows]
    saving = [(setup.saving_usd, row) for setup, row in zip(setups, rows, strict=True) if setup.saving_usd]
    _, most = max(saving, key=lambda each: each[0], default=(0.0, None))
    return LabTotals(
        # all less the deleted: both are counted in an index, where "not deleted" would be read row by row
        run_count=Run.all_runs.count() - Run.all_runs.filter(deleted_at__isnull=False).count(),
        setup_count=len(setups),
        sums=Unused.of(setups),
        as_of=timezone.now(),
        largest_saving=most
        and {"run_id": most["pk"], "name": model_name(most["model"]), "batch_size": most["recommended_batch_size"]},
    )


def _newest_of_scripts() -> list[int]:
    """Find people's own scripts: the newest certified run of each on each device with each limit."""
    certified = Run.objects.of_own_scripts().trusted().filter(state=State.FINISHED, certified=True, is_shared=False)
    newest: dict[tuple[Any, ...], int] = {}
    columns = ("pk", "model", "device_name", "limit_bytes")
    for pk, *setup in certified.newest_first().values_list(*columns)[:SCRIPT_RUNS_MAX]:
        newest.setdefault(tuple(setup), pk)
    return list(newest.values())
