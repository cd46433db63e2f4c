"""Reads the runs of a series out of the database, for the trend page and the API."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db.models import F
from django.db.models.fields.json import KeyTransform

from analysis.lists.environment import environment_facts
from analysis.lists.trend.series import Sample, SizedSpeed
from analysis.models import Measurement, Run, State, TrendAcknowledgement
from analysis.models.querysets import RunQuerySet
from analysis.presentation.charts.curves import memory_points
from analysis.presentation.kinds import BY_KIND
from analysis.presentation.origin import Origin, origin_text
from analysis.runs.columns.series import SeriesKey
from engine.results.result import DeviceFacts

SAMPLES_MAX = 200
LOOKED_THROUGH_MAX = 2_000
"""How many runs of a model, GPU, precision and optimizer are read, newest first, for those of the same settings."""

_TIMED_POINTS = ("current", "recommended", "fastest", "largest")
"""The sizes of a result whose speeds have intervals; one without an interval is in no series."""


def measured_runs() -> RunQuerySet:
    """Select finished measurements, newest first: estimates and untrusted reports are in no trend."""
    return Run.objects.measuring().trusted().filter(state=State.FINISHED).order_by("-finished_at", "-id")


def newest_measured(count: int) -> RunQuerySet:
    """Select the finished measurements that were requested last: the index of their state has this order."""
    return (
        measured_runs()
        .newest_first()
        .only(
            *("kind", "spec", "device_name", "limit_bytes", "capacity_bytes", "requested_kind", "reported_from"),
            *("finished_at", "largest_batch_size", "certified", "is_shared"),
        )[:count]
    )


def recommended_speeds(ids: Iterable[int]) -> dict[int, SizedSpeed]:
    rows = Run.objects.filter(pk__in=ids).values_list("pk", KeyTransform("recommended", "result"))
    return {pk: speed for pk, point in rows if (speed := SizedSpeed.of(point))}


def ids_of_series(query: SeriesKey) -> list[int]:
    settings = dict(query.settings)
    columns = {name: settings.get(name, "") for name in ("precision", "optimizer")}
    same = measured_runs().filter(model=query.model_of_runs, device_name=query.gpu, **columns)
    rows = same.values_list("pk", "spec")[:LOOKED_THROUGH_MAX]
    return [pk for pk, spec in rows if SeriesKey.of_run(spec, query.gpu) == query][: SAMPLES_MAX + 1]


def samples_of(ids: Iterable[int]) -> list[Sample]:
    ids = list(ids)
    runs = Run.objects.filter(pk__in=ids, finished_at__isnull=False).order_by("finished_at", "pk")
    rows = runs.values(
        *("pk", "finished_at", "largest_batch_size", "certified", "is_shared", "kind", "spec"),
        *("reported_from", "is_trusted", "requested_by__username"),
        environment=KeyTransform("environment", "result"),
        device_facts=KeyTransform("device", "result"),
        **{f"at_{point}": KeyTransform(point, "result") for point in _TIMED_POINTS},
    )
    measurements = Measurement.objects.filter(run__in=ids, attempt=F("run__attempt")).order_by("run", "sequence")
    columns = ("run_id", "batch_size", "outcome", "purpose", "peak_allocated_bytes", "peak_reserved_bytes")
    probes: dict[int, list[Measurement]] = defaultdict(list)
    for probe in measurements.only(*columns, "is_carried"):
        probes[probe.run_id].append(probe)
    return [_sample(run, probes[run["pk"]]) for run in rows]


def _sample(run: dict[str, Any], probes: list[Measurement]) -> Sample:
    device, words = DeviceFacts.from_dict(run["device_facts"]), BY_KIND[run["kind"]]
    left_out = "" if run["certified"] else "its limit is not certified"
    reporter = origin_text(run["reported_from"], run["requested_by__username"])
    speeds = filter(None, (SizedSpeed.of(run[f"at_{point}"]) for point in _TIMED_POINTS))
    return Sample(
        run_id=run["pk"],
        at=run["finished_at"],
        largest_batch_size=run["largest_batch_size"],
        memory=memory_points(probes),
        facts=environment_facts(device, run["environment"], sum(probe.is_carried for probe in probes)),
        left_out="other processes used the device" if run["is_shared"] else left_out,
        origin=Origin(reporter, run["reported_from"], run["is_trusted"]),
        speeds={each.batch_size: each.speed for each in speeds},
        own_settings=tuple(words.settings(run["spec"])) if words.runs_own_code else (),
    )


def acknowledgements_of(ids: Iterable[int]) -> dict[tuple[int, str], TrendAcknowledgement]:
    rows = TrendAcknowledgement.objects.filter(run__in=ids).select_related("acknowledged_by")
    return {(row.run_id, row.metric): row for row in rows}
