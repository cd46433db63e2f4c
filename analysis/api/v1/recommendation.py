"""The recommended batch size of an earlier measurement, for a training script to look up."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.v1.openapi_parameters import problems, spec_parameters
from analysis.api.v1.strict_view import StrictView
from analysis.http.problem_details import Problem, bad_parameter
from analysis.models import Device
from analysis.runs.gpu_catalog import gpu_of
from analysis.runs.placement import Placement, placement_find
from analysis.runs.reuse import NOT_MEASURED, EarlierResult, earlier_result
from engine.errors import SpecError
from engine.estimate.gpus import find
from engine.spec import VALUE_TYPES, RunSpec

_FIELDS = tuple(field for field in fields(RunSpec) if field.name == "device" or field.name not in NOT_MEASURED)
_WORDS: dict[str, bool] = {"1": True, "true": True, "0": False, "false": False}
_NONE_YET = (
    "there is no certified measurement of exactly these settings on such a card with its current software versions; "
    "start it with POST /api/v1/runs/"
)


class RecommendationSerializer(serializers.Serializer[EarlierResult]):
    """The newest certified measurement of the requested spec. All its figures were measured."""

    run = serializers.IntegerField(source="run.pk")
    finished_at = serializers.DateTimeField(source="run.finished_at")
    age_seconds = serializers.SerializerMethodField()
    device_name = serializers.CharField(source="run.device_name")
    certified = serializers.BooleanField(source="run.certified")
    recommended_batch_size = serializers.IntegerField(source="run.recommended_batch_size", allow_null=True)
    recommended_samples_per_second = serializers.FloatField(
        source="run.recommended_samples_per_second", allow_null=True
    )
    recommended_memory_bytes = serializers.IntegerField(source="run.recommended_memory_bytes", allow_null=True)
    is_speed_measurable = serializers.BooleanField(
        source="run.is_speed_measurable",
        allow_null=True,
        help_text="If false, the recommended size was chosen by memory alone. null in runs before version 0.5.",
    )
    largest_batch_size = serializers.IntegerField(
        source="run.largest_batch_size", help_text="0: not even batch size 1 fits."
    )
    torch = serializers.CharField(help_text="Version of torch in the measurement, the same as the current one.")
    library = serializers.CharField(help_text="Library that the model is from, with its version.")

    def get_age_seconds(self, found: EarlierResult) -> float | None:
        ended_at = found.run.finished_at
        return None if ended_at is None else (timezone.now() - ended_at).total_seconds()


def _parameters() -> list[OpenApiParameter]:
    """Describe the settings of a run that change what is measured, as the schema of a run does."""
    described = spec_parameters()
    card = {"type": "string"}
    parameters = [
        OpenApiParameter(
            field.name,
            {name: value for name, value in described[field.name].items() if name not in ("description", "x-unit")},
            required=field.name == "model",
            description=described[field.name]["description"],
        )
        for field in _FIELDS
    ]
    return [
        *parameters,
        OpenApiParameter("gpu", card, description="Instead of device: any card of this type in the portal."),
    ]


class Recommendation(StrictView):
    """The recommendation for a spec, given as parameters: `?model=bert&device=cuda&precision=bf16`."""

    query_parameters = (*(field.name for field in _FIELDS), "gpu")

    @extend_schema(
        tags=["recommendation"],
        operation_id="recommendation_retrieve",
        parameters=_parameters(),
        responses={200: RecommendationSerializer, **problems(404)},
    )
    def get(self, request: Request) -> Response:
        """Return the recommended batch size of the newest certified run with the same settings. 404 without one."""
        parameters = request.query_params.dict()
        gpu_id = parameters.pop("gpu", None)
        spec = _spec(parameters)
        found = earlier_result(spec, _devices(spec, gpu_id, "device" in parameters, request.user))
        if found is None:
            raise Problem(404, detail=f"{spec.model}: {_NONE_YET}", code="not_measured")
        return Response(RecommendationSerializer(found).data)


def _spec(parameters: dict[str, str]) -> RunSpec:
    try:
        return RunSpec.from_dict(
            {field.name: _value(field, parameters[field.name]) for field in _FIELDS if field.name in parameters}
        )
    except SpecError as error:
        raise _refusal(error) from error


def _value(field: Any, word: str) -> Any:
    """Convert a parameter to the field's JSON type; an invalid value is left to the spec to refuse."""
    kind = VALUE_TYPES[field.name]
    if kind is bool:
        return _WORDS.get(word.lower(), word)
    if kind is int and word.isascii() and word.isdecimal() and len(word) < 20:
        return int(word)
    if kind is float:
        try:
            return float(word)
        except ValueError:
            return word
    return word


def _devices(spec: RunSpec, gpu_id: str | None, names_device: bool, user: Any) -> list[Device]:
    """Return the devices that could execute such a run for this person."""
    offered = Device.objects.enabled().allowing(user).defer("calibration")
    if gpu_id is not None:
        if names_device:
            raise bad_parameter("gpu", "name a device or a card, not both")
        return [device for device in offered if _is_of(device, _card(gpu_id))]
    try:
        place = placement_find(spec.device, user=user)
    except SpecError as error:
        raise _refusal(error) from error
    return devices_of_placement(place, user)


def devices_of_placement(place: Placement, user: Any) -> list[Device]:
    """Return the one device, or those of the kind and class that this person may use."""
    if place.device:
        return [place.device]
    offered = Device.objects.enabled().allowing(user).defer("calibration").filter(kind=place.kind)
    return [device for device in offered if place.device_class.lower() in device.name.lower()]


def _card(gpu_id: str) -> str:
    try:
        return find(gpu_id).id
    except SpecError as error:
        raise _refusal(error) from error


def _is_of(device: Device, gpu_id: str) -> bool:
    gpu = gpu_of(device)
    return gpu is not None and gpu.id == gpu_id


def _refusal(error: SpecError) -> Problem:
    """Refuse a field of the spec as a parameter of the address."""
    name = error.field or "model"
    return bad_parameter(name, str(error).removeprefix(f"{name}: "), error.code)
