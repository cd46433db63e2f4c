"""Which series a trend is of: its query string; and its runs, read for the page and the API."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from django import forms
from django.db.models import F
from django.db.models.fields.json import KeyTransform

from analysis.charts.curves import memory_points
from analysis.http.query_string import FlagField, StrictQueryForm, WholeNumberField
from analysis.http.setting_fields import setting_field, with_fields
from analysis.lists.environment import environment_facts
from analysis.lists.trend.series import Sample, SizedSpeed
from analysis.models import Measurement, Run, State, TrendAcknowledgement
from analysis.models.querysets import RunQuerySet
from analysis.presentation.kinds import BY_KIND
from analysis.presentation.origin import Origin, origin_text
from analysis.runs.columns.series import SeriesKey, default_input_size
from engine.facts.result import DeviceFacts, Probe
from engine.settings.rank_settings import OF_STARTS
from engine.settings.spec import SETTINGS, TRAINING_SETTINGS

_INPUT_SIZES = ("sequence_length", "image_size", "input_size")


@with_fields(
    {name: setting_field(name, label="", help_text=SETTINGS[name].description) for name in TRAINING_SETTINGS},
    after="gpu",
)
class TrendForm(StrictQueryForm):
    """`?model=bert&gpu=A100&...`: a setting that is left out has the default of a new run."""

    # any text: the runs of a model that is no longer offered still have their trend
    model = forms.CharField(label="", help_text=SETTINGS["model"].description)
    gpu = forms.CharField(label="", help_text="`device_name` of the runs.")
    sequence_length = WholeNumberField(label="", required=False, help_text="Tokens. Default: the model's.")
    image_size = WholeNumberField(
        label="", required=False, help_text="Side of the image in pixels. Default: the model's."
    )
    input_size = WholeNumberField(
        label="", required=False, help_text="The same as `sequence_length` or `image_size`, by its former name."
    )
    memory_limit_bytes = WholeNumberField(
        label="", required=False, help_text="Memory limit of the runs. Default: no limit."
    )
    emulate_ranks = WholeNumberField(
        label="", required=False, help_text=f"{OF_STARTS['emulate_ranks'].label} of the runs. Default: none."
    )

    own_script = FlagField(
        label="",
        required=False,
        initial=False,
        help_text="Whether `model` is the name of an own script, of which no setting is known.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        sizes = [name for name in _INPUT_SIZES if name in self.given]
        for name in sizes[1:]:
            self.add_error(name, f"is given besides {sizes[0]}; give one of them")
        if cleaned.get("own_script"):
            for name in (*TRAINING_SETTINGS, *_INPUT_SIZES):
                if name in self.given:
                    self.add_error(name, "is not known of an own script; leave it out")
        return cleaned

    @property
    def series(self) -> SeriesKey:
        values = self.cleaned_data
        where = {name: values[name] for name in ("memory_limit_bytes", "emulate_ranks")}
        if values["own_script"]:
            return SeriesKey(values["model"], values["gpu"], (), None, **where, is_own_script=True)
        given_size = next((values[name] for name in _INPUT_SIZES if values[name]), None)
        return SeriesKey(
            model=values["model"],
            gpu=values["gpu"],
            settings=tuple((name, values[name]) for name in TRAINING_SETTINGS),
            input_size=given_size or default_input_size(values["model"]),
            **where,
        )


SAMPLES_MAX = 200
LOOKED_THROUGH_MAX = 2_000
"""How many runs of a model, GPU, precision and optimizer are read, newest first, for those of the same settings."""
_OF_MEMORY = (
    *("batch_size", "outcome", "purpose", "fresh_process", "step_seconds"),
    *("peak_allocated_bytes", "peak_reserved_bytes"),
)
"""What tells the memory of a size; the rest of a probe is not read."""
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
    probes, carried = defaultdict[int, list[Probe]](list), Counter[int]()
    for row in measurements.values("run_id", "is_carried", *_OF_MEMORY):
        run_id, is_carried = row.pop("run_id"), row.pop("is_carried")
        probes[run_id].append(Probe.from_dict(row))
        carried[run_id] += is_carried
    return [_sample(run, probes[run["pk"]], carried[run["pk"]]) for run in rows]


def _sample(run: dict[str, Any], probes: list[Probe], carried: int) -> Sample:
    device, words = DeviceFacts.from_dict(run["device_facts"]), BY_KIND[run["kind"]]
    left_out = "" if run["certified"] else "its limit is not certified"
    reporter = origin_text(run["reported_from"], run["requested_by__username"])
    speeds = filter(None, (SizedSpeed.of(run[f"at_{point}"]) for point in _TIMED_POINTS))
    return Sample(
        run_id=run["pk"],
        at=run["finished_at"],
        largest_batch_size=run["largest_batch_size"],
        memory=memory_points(probes),
        facts=environment_facts(device, run["environment"], carried),
        left_out="other processes used the device" if run["is_shared"] else left_out,
        origin=Origin(reporter, run["reported_from"], run["is_trusted"]),
        speeds={each.batch_size: each.speed for each in speeds},
        own_settings=tuple(words.settings(run["spec"])) if words.runs_own_code else (),
    )


def acknowledgements_of(ids: Iterable[int]) -> dict[tuple[int, str], TrendAcknowledgement]:
    rows = TrendAcknowledgement.objects.filter(run__in=ids).select_related("acknowledged_by")
    return {(row.run_id, row.metric): row for row in rows}
