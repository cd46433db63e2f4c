"""Reads the runs of a series out of the database, for the trend page and the API."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import starmap

from django.db.models import F
from django.db.models.fields.json import KeyTransform

from analysis.models import Measurement, Run, State, TrendAcknowledgement
from analysis.models.querysets import RunQuerySet
from analysis.pages.trend.series import Sample, TrendRun, sample_of
from analysis.runs.series import SeriesKey

SAMPLES_MAX = 200
LOOKED_THROUGH_MAX = 2_000
"""Runs of the model, card, precision and optimizer whose other settings are read, newest first."""


def measured_runs() -> RunQuerySet:
    """Finished measurements, newest first: an estimate has no place in a trend, nor has an untrusted report."""
    return Run.objects.measuring().trusted().filter(state=State.FINISHED).order_by("-finished_at", "-id")


def newest_measured(count: int) -> RunQuerySet:
    """Finished measurements that were asked for last: the index of their state has them in this order."""
    return (
        Run.objects.measuring()
        .trusted()
        .filter(state=State.FINISHED)
        .newest_first()
        .only("spec", "device_name")[:count]
    )


def ids_of_series(query: SeriesKey) -> list[int]:
    """Find the newest runs of the series, one more than is shown."""
    settings = dict(query.settings)
    columns = {name: settings[name] for name in ("precision", "optimizer")}
    same = measured_runs().filter(model=query.model, device_name=query.gpu, **columns)
    rows = same.values_list("pk", "spec")[:LOOKED_THROUGH_MAX]
    return [pk for pk, spec in rows if SeriesKey.of_run(spec, query.gpu) == query][: SAMPLES_MAX + 1]


def samples_of(ids: Iterable[int]) -> list[Sample]:
    """Oldest first, each with its measured probes; of the results only two small parts are read."""
    ids = list(ids)
    runs = Run.objects.filter(pk__in=ids, finished_at__isnull=False).order_by("finished_at", "pk")
    rows = runs.values_list(
        *("pk", "finished_at", "largest_batch_size", "certified", "is_shared"),
        KeyTransform("environment", "result"),
        KeyTransform("device", "result"),
    )
    probes = _probes(ids)
    return [
        sample_of(run, probes[run.pk], sum(probe.is_carried for probe in probes[run.pk]))
        for run in starmap(TrendRun, rows)
    ]


def acknowledgements_of(ids: Iterable[int]) -> dict[tuple[int, str], TrendAcknowledgement]:
    """Read the notes on the steps that begin with one of these runs, by run and metric."""
    rows = TrendAcknowledgement.objects.filter(run__in=ids).select_related("acknowledged_by")
    return {(row.run_id, row.metric): row for row in rows}


def _probes(ids: list[int]) -> dict[int, list[Measurement]]:
    rows = Measurement.objects.filter(run__in=ids, attempt=F("run__attempt")).order_by("run", "sequence")
    columns = ("run_id", "batch_size", "outcome", "purpose", "peak_allocated_bytes", "peak_reserved_bytes")
    by_run: dict[int, list[Measurement]] = defaultdict(list)
    for probe in rows.only(*columns, "is_carried"):
        by_run[probe.run_id].append(probe)
    return by_run
