"""What measurements say: the batch size to use, whether a size fits (else measured now), and the advice for a run."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.kinds.measurement import Measurement
from analysis.api.v1.base import openapi_parameters
from analysis.api.v1.base.openapi_parameters import problems
from analysis.api.v1.base.serializers import OriginSerializer
from analysis.api.v1.base.strict_input import body_object
from analysis.api.v1.base.views import StrictView
from analysis.api.v1.run.runs import poll_again, run_or_404
from analysis.api.waiting import waited_for
from analysis.http.problem_details import Problem, bad_field, bad_parameter
from analysis.http.query_string import StrictQueryForm, WholeNumberField
from analysis.http.setting_fields import setting_field, with_fields
from analysis.models import Device, Run, State
from analysis.permissions import signed_in_user
from analysis.presentation.advice_query import AdviceForm, advice_of
from analysis.presentation.origin import origin_members
from analysis.runs.earlier.fits import DERIVED, MEASURED, FitAnswer, fit_known, fit_of, fit_under_way
from analysis.runs.earlier.reuse import NOT_MEASURED, EarlierResult, earlier_result
from analysis.runs.gpu_catalog import gpu_of
from analysis.runs.queue.placement import Placement, placement_find
from analysis.runs.services import run_create
from engine.errors import SpecError
from engine.estimate.gpus import find
from engine.settings.spec import DEFAULTS, RANGES, SETTINGS, VALUE_TYPES, RunSpec
from engine.settings.spec_checks import is_of_bytes

_SETTINGS = tuple(name for name in SETTINGS if name == "device" or name not in NOT_MEASURED)
_NONE_YET = (
    "there is no certified measurement of exactly these settings on such a device with its current software versions; "
    "start it with POST /api/v1/runs/"
)


class RecommendationSerializer(OriginSerializer):
    """The newest certified measurement of the requested spec. All its figures were measured."""

    run = serializers.IntegerField(source="run.pk")
    finished_at = serializers.DateTimeField(source="run.finished_at")
    age_seconds = serializers.SerializerMethodField()
    device_name = serializers.CharField(source="run.device_name")
    certified = serializers.BooleanField(source="run.certified")
    recommended_batch_size = serializers.IntegerField(
        source="run.recommended_batch_size",
        allow_null=True,
        help_text=(
            "The smallest size within 3 % of the fastest that leaves the reserve free, from compared speeds. null: "
            "they were not compared, or do not say which is better."
        ),
    )
    recommended_samples_per_second = serializers.FloatField(
        source="run.recommended_samples_per_second", allow_null=True
    )
    recommended_memory_bytes = serializers.IntegerField(source="run.recommended_memory_bytes", allow_null=True)
    is_speed_measurable = serializers.BooleanField(
        source="run.is_speed_measurable",
        allow_null=True,
        help_text="Whether speeds are known well enough for figures. null in runs before version 0.5.",
    )
    largest_batch_size = serializers.IntegerField(
        source="run.largest_batch_size", help_text="0: not even batch size 1 fits."
    )
    torch = serializers.CharField(help_text="Version of torch in the measurement, the same as the current one.")
    library = serializers.CharField(help_text="Library that the model is from, with its version.")

    def get_age_seconds(self, found: EarlierResult) -> float | None:
        ended_at = found.run.finished_at
        return None if ended_at is None else (timezone.now() - ended_at).total_seconds()


def _field(name: str) -> forms.Field:
    described = {"label": "", "help_text": SETTINGS[name].description}
    options: dict[str, Any] = {**described, "initial": DEFAULTS.get(name), "required": name not in DEFAULTS}
    if name in RANGES and not is_of_bytes(name):  # which may be text such as 24GiB
        low, high = RANGES[name]
        if VALUE_TYPES[name] is float:
            return forms.FloatField(min_value=low, max_value=high, **options)
        return WholeNumberField(min_value=int(low), max_value=int(high), **options)
    # the model stays open: a client generated today may ask for a model added tomorrow
    is_offered = name != "model" and SETTINGS[name].choices or VALUE_TYPES[name] is bool
    return setting_field(name, **options) if is_offered else forms.CharField(**options)


@with_fields({name: _field(name) for name in _SETTINGS})
class RecommendationForm(StrictQueryForm):
    """The settings of a run that change what is measured, and where."""

    gpu = forms.CharField(label="", required=False, help_text="Instead of device: any GPU of this type in the portal.")

    def clean(self) -> None:
        if {"gpu", "device"} <= self.given.keys():
            self.add_error("gpu", "name a device or a GPU, not both")

    @property
    def spec(self) -> RunSpec:
        """Return the spec of the parameters. Raises SpecError."""
        values = self.cleaned_data
        return RunSpec.from_dict({name: values[name] for name in _SETTINGS if values[name] not in (None, "")})


class Recommendation(StrictView):
    """The recommendation for a spec, given as parameters: `?model=bert&device=cuda&precision=bf16`."""

    query_form = RecommendationForm

    @extend_schema(operation_id="recommendation_retrieve", responses={200: RecommendationSerializer, **problems(404)})
    def get(self, request: Request) -> Response:
        """Return the recommended batch size of the newest certified run with the same settings. 404 without one."""
        form: RecommendationForm = self.query
        try:
            spec = form.spec
            found = earlier_result(spec, _devices(spec, form.cleaned_data["gpu"], request.user))
        except SpecError as error:
            name = error.field or "model"  # a parameter of the address, as every field of the spec is one
            raise bad_parameter(name, error.reason, error.code) from error
        if found is None:
            raise Problem(404, detail=f"{spec.model}: {_NONE_YET}", code="not_measured")
        return Response(RecommendationSerializer(found).data)


def _devices(spec: RunSpec, gpu_id: str, user: Any) -> list[Device]:
    """Return the devices that could execute such a run for this person. Raises SpecError."""
    if gpu_id:
        card = find(gpu_id).id
        offered = Device.objects.enabled().allowing(user).defer("calibration")
        return [device for device in offered if (gpu := gpu_of(device)) is not None and gpu.id == card]
    return devices_of_placement(placement_find(spec.device, user=user), user)


def devices_of_placement(place: Placement, user: Any) -> list[Device]:
    if place.device:
        return [place.device]
    offered = Device.objects.enabled().allowing(user).defer("calibration").filter(kind=place.kind)
    return [device for device in offered if place.device_class.lower() in device.name.lower()]


_CHECKED, _GIVEN = "check_batch_size", "batch_size"
_PREFER = OpenApiParameter(
    "Prefer", str, OpenApiParameter.HEADER, description="respond-async: answer without waiting for a run."
)


class FitSerializer(OriginSerializer):
    """Whether this batch size trains with these settings, and the run that shows it."""

    batch_size = serializers.IntegerField()
    fits = serializers.BooleanField(
        source="known.fits",
        allow_null=True,
        help_text="null: unknown, because the run is not over, or gave no result (see `state`).",
    )
    basis = serializers.ChoiceField(
        [MEASURED, DERIVED],
        source="known.basis",
        allow_null=True,
        help_text="measured: this size was run. derived: a larger one trained, or a smaller one did not.",
    )
    run = serializers.IntegerField(source="run.pk")
    state = serializers.CharField(source="run.state")
    url = serializers.HyperlinkedRelatedField[Run](
        view_name="api-run", source="run", read_only=True, help_text="URL of the run."
    )
    device_name = serializers.CharField(source="run.device_name")
    limit_bytes = serializers.IntegerField(
        source="run.limit_bytes", allow_null=True, help_text="Memory that the run may use."
    )
    error_message = serializers.CharField(
        source="run.error_message", help_text="Why the run gave no result, if it failed."
    )


class Fits(StrictView):
    throttle_scope = "create"

    @extend_schema(
        operation_id="fits",
        parameters=[_PREFER, openapi_parameters.LOCATION, openapi_parameters.RETRY_AFTER],
        request=openapi_parameters.body("FitsRequestRequest"),
        responses={200: FitSerializer, 202: FitSerializer},
    )
    def post(self, request: Request) -> Response:
        """Answer whether `batch_size` trains with these settings; 202 while its run is not over.

        Earlier runs of the same spec answer it at once. Otherwise this size is run for many steps in a fresh process,
        and the request waits like POST /analyze. A repeated request joins the unfinished run.
        """
        values = body_object(request)
        size = values.pop(_GIVEN, None)
        if not isinstance(size, int) or isinstance(size, bool):
            raise bad_field(_GIVEN, "is required: the whole number of samples that is to fit", "required")
        for name in (_CHECKED, "kind", "gpu"):
            if name in values:
                raise bad_field(name, f"is not allowed here; use {_GIVEN}", "unknown")
        user = signed_in_user(request)
        try:
            arguments = Measurement().submission({**values, _CHECKED: size}, user)
        except SpecError as error:
            if error.field != _CHECKED:
                raise
            raise bad_field(_GIVEN, error.reason, error.code) from error
        known = fit_known(arguments["spec"], devices_of_placement(arguments["place"], user))
        if known is not None:
            return _answer(known.run, size, known, request)
        run = waited_for(fit_under_way(arguments["spec"], user) or run_create(**arguments), request)
        return _answer(run, size, fit_of(run, size) if run.state == State.FINISHED else None, request)


def _answer(run: Run, size: int, known: FitAnswer | None, request: Request) -> Response:
    body = FitSerializer({"batch_size": size, "known": known, "run": run}, context={"request": request}).data
    if run.is_over:
        return Response(body)
    return Response(body, 202, headers={"Location": str(body["url"]), **poll_again(run)})


_PARAMETERS = {"global_batch_size": "global_batch", "devices": "devices", "gpu": "gpu"}


class RunAdvice(StrictView):
    query_form = AdviceForm

    @extend_schema(responses={200: {"$ref": "#/components/schemas/Advice"}})
    def get(self, request: Request, pk: int) -> Response:
        """Return pairs that keep a global batch exactly, the rules for the learning rate, and code to paste.

        404 where the run has no result, or no size that keeps the reserve.
        """
        run = run_or_404(pk)
        if not run.result:
            raise Problem(404, detail=f"Run {pk} is {run.state}: advice needs its result.", code="no_advice")
        try:
            advice = advice_of(run, self.query)
        except SpecError as error:
            if error.field in _PARAMETERS:
                raise bad_parameter(_PARAMETERS[error.field], error.reason) from error
            raise Problem(404, detail=f"Run {pk} is {run.state}: {error}.", code="no_advice") from error
        return Response({**advice.to_dict(), **origin_members(run)})
