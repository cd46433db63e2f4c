"""The page that follows one workload on one card over time, and the note on a step of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from django.contrib import messages
from django.db.models import F
from django.db.models.fields.json import KeyTransform
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from analysis import services
from analysis.comparison.asked import BadQuery, TrendQuery
from analysis.comparison.tables import TrendAcknowledgement
from analysis.comparison.trend_page import known_series, trend_context
from analysis.comparison.trend_series import METRICS, Sample, sample_of
from analysis.content_policy import allow_inline_styles
from analysis.models import Measurement, Run, State
from analysis.querysets import RunQuerySet

SAMPLES_MAX = 200
LOOKED_THROUGH_MAX = 2_000
"""Runs of the model, card, precision and optimizer whose other settings are read, newest first."""
CHOICE_FROM_MAX = 500


@allow_inline_styles
@require_safe
def trend(request: HttpRequest) -> HttpResponse:
    """One series; without a query the series that the newest runs make up."""
    if not request.GET:
        series = known_series(_measured().only("spec", "device_name")[:CHOICE_FROM_MAX])
        return render(request, "analysis/trend_choice.html", {"series": series, "looked_at": CHOICE_FROM_MAX})
    try:
        query = TrendQuery.of(request.GET)
    except BadQuery as error:
        return render(request, "analysis/trend_refused.html", {"error": error}, status=400)
    ids = _ids(query)
    samples = _samples(ids[:SAMPLES_MAX])
    context = trend_context(query, samples, _acknowledgements(ids), is_cut=len(ids) > SAMPLES_MAX)
    return render(request, "analysis/trend.html", context)


@require_POST
def trend_acknowledge(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    """Say what the step is that begins with this run."""
    run = get_object_or_404(_measured(), pk=run_id)
    metric, note = request.POST.get("metric", ""), request.POST.get("note", "").strip()
    if metric not in METRICS or not note:
        messages.error(request, "Nothing was noted: say in a few words what the step is.")
    else:
        services.step_acknowledge(run=run, metric=metric, note=note, acknowledged_by=request.user)
    return redirect(reverse("analysis:trend") + TrendQuery.of_run(run.spec, run.device_name).address)


def _measured() -> RunQuerySet:
    """Finished measurements, newest first: an estimate has no place in a trend."""
    return Run.objects.measuring().filter(state=State.FINISHED).order_by("-finished_at", "-id")


def _ids(query: TrendQuery) -> list[int]:
    """The newest runs of the series, one more than is shown."""
    same = _measured().filter(
        model=query.model, device_name=query.gpu, precision=query.precision, optimizer=query.optimizer
    )
    rows = same.values_list("pk", "spec")[:LOOKED_THROUGH_MAX]
    return [pk for pk, spec in rows if TrendQuery.of_run(spec, query.gpu) == query][: SAMPLES_MAX + 1]


def _samples(ids: Iterable[int]) -> list[Sample]:
    """Oldest first, each with its measured probes; of the results only two small parts are read."""
    ids = list(ids)
    runs = Run.objects.filter(pk__in=ids).annotate(
        environment=KeyTransform("environment", "result"), device_facts=KeyTransform("device", "result")
    )
    shown = runs.only("finished_at", "largest_batch_size", "certified", "is_shared").order_by("finished_at", "pk")
    probes = _probes(ids)
    return [sample_of(run, probes[run.pk], sum(probe.is_carried for probe in probes[run.pk])) for run in shown]


def _probes(ids: list[int]) -> dict[int, list[Measurement]]:
    rows = Measurement.objects.filter(run__in=ids, attempt=F("run__attempt")).order_by("run", "sequence")
    columns = ("run_id", "batch_size", "outcome", "purpose", "peak_allocated_bytes", "peak_reserved_bytes")
    by_run: dict[int, list[Measurement]] = defaultdict(list)
    for probe in rows.only(*columns, "is_carried"):
        by_run[probe.run_id].append(probe)
    return by_run


def _acknowledgements(ids: Iterable[int]) -> dict[tuple[int, str], TrendAcknowledgement]:
    rows = TrendAcknowledgement.objects.filter(run__in=ids).select_related("acknowledged_by")
    return {(row.run_id, row.metric): row for row in rows}
