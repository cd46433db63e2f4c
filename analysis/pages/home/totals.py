"""Totals of all runs, for the home page. Read from columns, at most every ten seconds while the same runs are shown.

Adding up every run would count a workload as often as it was measured. So each model on each card, with each
setting, counts once, by its newest certified run, which the cells of the matrix name.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache
from django.db.models import Count, F, Q, Sum
from django.utils import timezone

from analysis.models import MatrixCell, Run
from analysis.runs.matrix_cells import MEASURED

KEPT_SECONDS = 10
CACHE_KEY = "analysis.pages.home.totals"


@dataclass(frozen=True, slots=True)
class LabTotals:
    """Of `setup_count` combinations of model, card and settings. What no run measured is None; a measured zero is 0."""

    run_count: int
    setup_count: int
    waste_bytes: int | None
    waste_of_bytes: int | None
    wasting_count: int
    saving_per_year_usd: float | None
    saving_count: int
    as_of: datetime

    @property
    def waste_share(self) -> float | None:
        return self.waste_bytes / self.waste_of_bytes if self.waste_bytes is not None and self.waste_of_bytes else None


def lab_totals(shown: Iterable[Run] = ()) -> LabTotals:
    """Return those that this process read last, while they are fresh and the runs beside them are the same."""
    seen = zlib.crc32(repr([(run.pk, run.state) for run in shown]).encode())
    totals: LabTotals | None = cache.get_or_set(f"{CACHE_KEY}.{seen}", lab_totals_read, KEPT_SECONDS)
    return lab_totals_read() if totals is None else totals


def lab_totals_read() -> LabTotals:
    """Two statements, and one over the few deleted runs: none of them opens a result."""
    has_waste = Q(run__current_waste_bytes__isnull=False, run__limit_bytes__isnull=False)
    # where the advice is to keep today's size, its unused memory is no waste: nothing is gained by using it
    wastes = has_waste & ~Q(run__recommended_batch_size=F("run__current_batch_size"))
    # a saving whose interval holds none is not claimed
    is_shown = Q(run__saving_per_year_usd_low__isnull=True) | Q(run__saving_per_year_usd_low__gt=0)
    has_saving = Q(run__saving_per_year_usd__isnull=False)
    saves = Q(run__saving_per_year_usd__gt=0) & is_shown
    figures = MatrixCell.objects.filter(kind=MEASURED, run__deleted_at=None).aggregate(
        setup_count=Count("pk"),
        waste_bytes=Sum("run__current_waste_bytes", filter=wastes),
        waste_of_bytes=Sum("run__limit_bytes", filter=has_waste),
        wasting_count=Count("pk", filter=wastes),
        saving_per_year_usd=Sum("run__saving_per_year_usd", filter=saves),
        saving_count=Count("pk", filter=saves),
        compared_count=Count("pk", filter=has_saving),
    )
    if figures["waste_of_bytes"] is not None:
        figures["waste_bytes"] = figures["waste_bytes"] or 0
    if figures.pop("compared_count"):
        figures["saving_per_year_usd"] = figures["saving_per_year_usd"] or 0.0
    return LabTotals(run_count=_run_count(), as_of=timezone.now(), **figures)


def _run_count() -> int:
    """All less the deleted: both are counted in an index, where "not deleted" would be read row by row."""
    return Run.all_runs.count() - Run.all_runs.filter(deleted_at__isnull=False).count()
