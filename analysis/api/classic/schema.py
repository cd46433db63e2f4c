"""The OpenAPI description of the classic endpoints: the published contract, with its own form of errors."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiViewExtension
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers

_TAGS = ["classic"]


class ClassicErrorSerializer(serializers.Serializer[Any]):
    """Every error of the classic endpoints."""

    status = serializers.ChoiceField(["error"])
    error = serializers.CharField()


class HealthSerializer(serializers.Serializer[Any]):
    """State of this server and of the device that a run gets by default."""

    status = serializers.ChoiceField(["healthy"])
    gpu_available = serializers.BooleanField()
    gpu_name = serializers.CharField(allow_null=True)
    gpu_memory_total_gb = serializers.FloatField(allow_null=True, help_text="Memory of the GPU in GiB, rounded.")
    gpu_memory_total_bytes = serializers.IntegerField(allow_null=True)
    device = serializers.CharField(allow_null=True)
    timestamp = serializers.DateTimeField()
    version = serializers.CharField(help_text="Version of MemoryMark that this server runs.")


class ClassicModelSerializer(serializers.Serializer[Any]):
    """A model that can be analysed."""

    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    type = serializers.CharField(help_text="Kind of model: nlp or vision.")
    task = serializers.CharField(help_text="Task of the training: text-classification or image-classification.")
    huggingface_id = serializers.CharField(allow_null=True)


class ClassicModelsSerializer(serializers.Serializer[Any]):
    """All models that can be analysed."""

    models = ClassicModelSerializer(many=True)


class AnalyzeBodySerializer(serializers.Serializer[Any]):
    """`model_name`, `device_class`, and every key of a spec except `model`: see /api/v1/settings/."""

    model_name = serializers.CharField(help_text="Id of a model in /models.")


class AnalyzedSizeSerializer(serializers.Serializer[Any]):
    """A tested batch size. `_mb` is MiB, `_gb` is GiB, both rounded."""

    batch_size = serializers.IntegerField()
    memory_bytes = serializers.IntegerField(allow_null=True)
    memory_mb = serializers.FloatField(allow_null=True)
    memory_gb = serializers.FloatField(allow_null=True)
    success = serializers.BooleanField()
    error = serializers.CharField(allow_null=True)


class ExactFiguresSerializer(serializers.Serializer[Any]):
    """The measured figures, not rounded, with the names of version 1."""

    capacity_bytes = serializers.IntegerField(allow_null=True)
    recommended_memory_bytes = serializers.IntegerField(allow_null=True)
    current_memory_bytes = serializers.IntegerField(allow_null=True)
    waste_bytes = serializers.IntegerField(allow_null=True)
    waste_fraction = serializers.FloatField(allow_null=True)
    current_waste_bytes = serializers.IntegerField(allow_null=True)
    current_waste_fraction = serializers.FloatField(allow_null=True)
    speedup = serializers.FloatField(allow_null=True)
    speedup_low = serializers.FloatField(allow_null=True)
    speedup_high = serializers.FloatField(allow_null=True)
    batch_size_ratio = serializers.FloatField(allow_null=True)
    saving_per_run_usd = serializers.FloatField(allow_null=True)
    saving_per_year_usd = serializers.FloatField(allow_null=True)
    saving_per_run_usd_low = serializers.FloatField(allow_null=True)
    saving_per_year_usd_low = serializers.FloatField(allow_null=True)


class AnalyzedSerializer(serializers.Serializer[Any]):
    """The measured figures. `_gb` is GiB; figures are rounded; null means not measured."""

    run_id = serializers.IntegerField()
    model_name = serializers.CharField()
    device = serializers.CharField()
    gpu_total_gb = serializers.FloatField(allow_null=True)
    results = AnalyzedSizeSerializer(many=True)
    optimal_batch_size = serializers.IntegerField(allow_null=True)
    optimal_memory_gb = serializers.FloatField(allow_null=True)
    current_batch_size = serializers.IntegerField()
    current_memory_gb = serializers.FloatField(allow_null=True)
    waste_gb = serializers.FloatField(allow_null=True)
    waste_percent = serializers.FloatField(allow_null=True)
    current_waste_gb = serializers.FloatField(allow_null=True)
    current_waste_percent = serializers.FloatField(allow_null=True)
    speedup = serializers.FloatField(allow_null=True)
    batch_size_ratio = serializers.FloatField(allow_null=True)
    cost_savings_per_run = serializers.FloatField(allow_null=True)
    cost_savings_annual = serializers.FloatField(allow_null=True)
    certified = serializers.BooleanField()
    exact = ExactFiguresSerializer()


class AnalyzeSerializer(serializers.Serializer[Any]):
    """A finished analysis."""

    status = serializers.ChoiceField(["success"])
    # a declared field: the metaclass takes it off the class, where the stubs expect `Serializer.data`
    data = AnalyzedSerializer()  # type: ignore[assignment]


class AcceptedSerializer(serializers.Serializer[Any]):
    """The run continues after the request has ended."""

    status = serializers.ChoiceField(["accepted"])
    run_id = serializers.IntegerField()
    url = serializers.URLField()


def _errors(*statuses: int) -> dict[int, Any]:
    return dict.fromkeys(statuses, ClassicErrorSerializer)


def _described(view: type, **methods: Any) -> type:
    return extend_schema_view(**methods)(type(view.__name__, (view,), {"__doc__": view.__doc__}))


class HealthDescribed(OpenApiViewExtension):
    """`GET /health`."""

    target_class = "analysis.api.classic.views.Health"

    def view_replacement(self) -> type:
        answers = {200: HealthSerializer, **_errors(503)}
        description = "State of this server and its first device."
        return _described(
            self.target,
            get=extend_schema(tags=_TAGS, operation_id="health", description=description, auth=[], responses=answers),
        )


class ModelsDescribed(OpenApiViewExtension):
    """`GET /models`."""

    target_class = "analysis.api.classic.views.Models"

    def view_replacement(self) -> type:
        answers = {200: ClassicModelsSerializer}
        return _described(
            self.target,
            get=extend_schema(
                tags=_TAGS,
                operation_id="models",
                description="Models that can be analysed.",
                auth=[],
                responses=answers,
            ),
        )


class AnalyzeDescribed(OpenApiViewExtension):
    """`POST /analyze`."""

    target_class = "analysis.api.classic.views.Analyze"

    def view_replacement(self) -> type:
        answers = {200: AnalyzeSerializer, 202: AcceptedSerializer}
        prefer = OpenApiParameter(
            "Prefer", str, OpenApiParameter.HEADER, description="respond-async: answer without waiting for the run."
        )
        return _described(
            self.target,
            post=extend_schema(
                tags=_TAGS,
                operation_id="analyze",
                description="Store a run and wait for it. 202 when the run takes too long, or too many requests wait.",
                parameters=[prefer],
                request=AnalyzeBodySerializer,
                responses={**answers, **_errors(400, 401, 403, 406, 413, 415, 429, 500, 503)},
            ),
        )
