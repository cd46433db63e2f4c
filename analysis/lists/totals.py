"""Totals of all runs, for the home page. Read from columns, at most every ten seconds while the same runs are shown.

Adding up every run would count a workload as often as it was measured. So each model on each card, with each
setting, counts once, by its newest certified run, which the cells of the matrix name. People's own scripts have no
cells: each script on each device with each memory limit counts once, by its newest certified run.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import BigIntegerField, Count, F, Q, QuerySet, Sum, Value
from django.db.models.functions import Greatest
from django.utils import timezone

from analysis.models import MatrixCell, Run, State
from analysis.presentation.formatting import usd
from analysis.presentation.labels import model_name
from analysis.runs.columns.matrix_cells import MEASURED
from engine.text.units import format_least_usd

KEPT_SECONDS = 10
CACHE_KEY = "analysis.lists.totals"
SCRIPT_RUNS_MAX = 1_000
"""Newest runs of own scripts that are looked through: it bounds the time of the page, however many there are."""


@dataclass(frozen=True, slots=True)
class LargestSaving:
    """The setup whose recommended size saves most in a year."""

    run_id: int
    name: str
    batch_size: int
    saving_usd: float


@dataclass(frozen=True, slots=True)
class LabTotals:
    """Totals over `setup_count` combinations of model or script, card and settings.

    None: no run measured it; 0 was measured. `advised_bytes` are those of `unused_bytes` that the recommended sizes
    would use, in `advised_count` setups: of the others nothing says that using them gains anything.
    """

    run_count: int
    setup_count: int
    unused_bytes: int | None
    unused_of_bytes: int | None
    unused_count: int
    advised_bytes: int | None
    advised_count: int
    saving_per_year_usd: float | None
    saving_count: int
    least_saving_count: int
    """Setups that save an amount of which only the least is known: with them the sum is a lower bound."""
    as_of: datetime
    largest_saving: LargestSaving | None = None

    @property
    def saving_text(self) -> str:
        """Write the saving of a year; "at least" where it holds lower bounds."""
        if self.saving_per_year_usd is None:
            return ""
        if self.least_saving_count:
            return f"at least {format_least_usd(self.saving_per_year_usd)}"
        return usd(self.saving_per_year_usd)

    @property
    def unused_share(self) -> float | None:
        return (
            self.unused_bytes / self.unused_of_bytes if self.unused_bytes is not None and self.unused_of_bytes else None
        )


def lab_totals(shown: Iterable[Run] = ()) -> LabTotals:
    """Return those that this process read last, while they are fresh and the runs beside them are the same."""
    seen = zlib.crc32(repr([(run.pk, run.state) for run in shown]).encode())
    totals: LabTotals | None = cache.get_or_set(f"{CACHE_KEY}.{seen}", lab_totals_read, KEPT_SECONDS)
    return lab_totals_read() if totals is None else totals


def lab_totals_read() -> LabTotals:
    """Six statements, and one over the few deleted runs: none of them opens a result."""
    models, scripts = MatrixCell.objects.filter(kind=MEASURED, run__deleted_at=None), _newest_of_scripts()
    figures = _added(_aggregated(models, "run__"), _aggregated(scripts, ""))
    savings = [each for each in (_largest_saving(models, "run__"), _largest_saving(scripts, "")) if each]
    largest_saving = max(savings, key=lambda each: each.saving_usd, default=None)
    if figures["unused_count"]:
        figures["advised_bytes"] = figures["advised_bytes"] or 0
    if figures.pop("compared_count"):
        figures["saving_per_year_usd"] = figures["saving_per_year_usd"] or 0.0
    # all less the deleted: both are counted in an index, where "not deleted" would be read row by row
    run_count = Run.all_runs.count() - Run.all_runs.filter(deleted_at__isnull=False).count()
    return LabTotals(run_count=run_count, as_of=timezone.now(), largest_saving=largest_saving, **figures)


def _added(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    pairs = {name: (first[name], second[name]) for name in first}
    return {
        name: None if pair == (None, None) else sum(value for value in pair if value is not None)
        for name, pair in pairs.items()
    }


def _newest_of_scripts() -> QuerySet[Any]:
    """Select people's own scripts: the newest certified run of each on each device with each limit."""
    certified = Run.objects.of_own_scripts().trusted().filter(state=State.FINISHED, certified=True, is_shared=False)
    newest: dict[tuple[Any, ...], int] = {}
    columns = ("pk", "model", "device_name", "limit_bytes")
    for pk, *setup in certified.newest_first().values_list(*columns)[:SCRIPT_RUNS_MAX]:
        newest.setdefault(tuple(setup), pk)
    return Run.objects.filter(pk__in=newest.values()).order_by()


def _largest_saving(rows: QuerySet[Any], run: str) -> LargestSaving | None:
    names = ("pk", "model", "recommended_batch_size", "claimed_saving_per_year_usd")
    saving = f"{run}claimed_saving_per_year_usd"
    found = rows.filter(_is_saving(run)).order_by(f"-{saving}").values_list(*(f"{run}{name}" for name in names)).first()
    if found is None:
        return None
    run_id, model, batch_size, saving_usd = found
    return LargestSaving(run_id, model_name(model), batch_size, saving_usd)


def _is_saving(run: str) -> Q:
    """Select only savings whose interval excludes zero."""
    low = f"{run}saving_per_year_usd_low"
    is_shown = Q(**{f"{low}__isnull": True}) | Q(**{f"{low}__gt": 0})
    is_advised = Q(**{f"{run}recommended_batch_size__isnull": False})
    return Q(**{f"{run}claimed_saving_per_year_usd__gt": 0}) & is_shown & is_advised


def _aggregated(rows: QuerySet[Any], run: str) -> dict[str, Any]:
    """Add up in the database. The names are prefixed meanwhile: some are those of columns that others read."""
    found = rows.aggregate(**{f"total_{name}": sum_ for name, sum_ in _sums(run).items()})
    return {name.removeprefix("total_"): value for name, value in found.items()}


def _sums(run: str) -> dict[str, Any]:

    def of(column: str) -> str:
        return f"{run}{column}"

    has_waste = Q(**{of("current_waste_bytes__isnull"): False, of("limit_bytes__isnull"): False})
    is_any_advised = Q(**{of("recommended_memory_bytes__isnull"): False})
    is_advised = has_waste & is_any_advised & ~Q(**{of("recommended_batch_size"): F(of("current_batch_size"))})
    # what the recommended size takes more than today's
    more = F(of("recommended_memory_bytes")) - (F(of("limit_bytes")) - F(of("current_waste_bytes")))
    saves = _is_saving(run)
    return {
        "setup_count": Count("pk"),
        "unused_bytes": Sum(of("current_waste_bytes"), filter=has_waste),
        "unused_of_bytes": Sum(of("limit_bytes"), filter=has_waste),
        "unused_count": Count("pk", filter=has_waste),
        "advised_bytes": Sum(Greatest(more, Value(0), output_field=BigIntegerField()), filter=is_advised),
        "advised_count": Count("pk", filter=is_advised),
        "saving_per_year_usd": Sum(of("claimed_saving_per_year_usd"), filter=saves),
        "saving_count": Count("pk", filter=saves),
        "least_saving_count": Count("pk", filter=saves & Q(**{of("saving_per_year_usd__isnull"): True})),
        "compared_count": Count("pk", filter=Q(**{of("claimed_saving_per_year_usd__isnull"): False})),
    }
