"""Reads the runs that are compared out of the database, for the page and the API."""

from __future__ import annotations

from django.db.models import Count, F

from analysis.models import Measurement, Run
from analysis.pages.compare.context import in_order


def stored_runs(ids: tuple[int, ...]) -> list[Run]:
    """In the requested order. Raises BadQuery for one that is not stored."""
    return in_order(Run.objects.with_places().in_bulk(ids), ids)


def carried_probe_counts(ids: tuple[int, ...]) -> dict[int, int]:
    """How many probes of each run's last attempt were measured in an earlier one."""
    carried = Measurement.objects.filter(run__in=ids, is_carried=True, attempt=F("run__attempt"))
    return dict(carried.order_by().values_list("run_id").annotate(Count("pk")))
