"""The recommended batch size of an earlier measurement, for a training script to look up."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.v1.base.openapi_parameters import problems
from analysis.api.v1.base.serializers import OriginSerializer
from analysis.api.v1.base.strict_view import StrictView
from analysis.http.problem_details import Problem, bad_parameter
from analysis.http.query_string import StrictQueryForm, WholeNumberField
from analysis.http.setting_fields import setting_field, with_fields
from analysis.models import Device
from analysis.runs.earlier.reuse import NOT_MEASURED, EarlierResult, earlier_result
from analysis.runs.gpu_catalog import gpu_of
from analysis.runs.queue.placement import Placement, placement_find
from engine.errors import SpecError
from engine.estimate.gpus import find
from engine.spec import DEFAULTS, RANGES, SETTINGS, VALUE_TYPES, RunSpec

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
    if name in RANGES and name != "memory_limit_bytes":  # which may be text such as 24GiB
        low, high = RANGES[name]
        if VALUE_TYPES[name] is float:
            return forms.FloatField(min_value=low, max_value=high, **options)
        return WholeNumberField(min_value=int(low), max_value=int(high), **options)
    # the model stays open: a client that is generated today may ask for one that is added tomorrow
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
        """Raises SpecError."""
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
            raise bad_parameter(name, str(error).removeprefix(f"{name}: "), error.code) from error
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
