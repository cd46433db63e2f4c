"""The engine's terms -> the classic contract's. Its `_gb` fields are GiB, its `_mb` fields MiB.

Its clients print figures unchanged, so they are rounded as in the summary of the command line: one decimal, money
two. The exact figures are added in bytes or under `exact`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analysis.models import Device
from engine import __version__
from engine.facts.result import Probe
from engine.facts.stats import decisive_probes
from engine.questions.documents.measured import Measured
from engine.settings.catalog import WORKLOADS, Workload
from engine.text.units import GIB, MIB


class ClassicErrorSerializer(serializers.Serializer[Any]):
    """Every error of the classic endpoints."""

    status = serializers.ChoiceField(["error"])
    error = serializers.CharField()


Exact = partial(serializers.FloatField, allow_null=True)
Whole = partial(serializers.IntegerField, allow_null=True)
"""A figure as it was measured, or null where it was not."""


class Rounded(serializers.FloatField):
    """A figure in a unit, rounded; null where it was not measured."""

    def __init__(
        self, source: str | None = None, *, times: int = 1, unit: int = 1, decimals: int = 1, help_text: str = ""
    ) -> None:
        super().__init__(source=source, allow_null=True, help_text=help_text or None)
        self.times, self.unit, self.decimals = times, unit, decimals

    # according to the stubs DRF's own field returns text; it returns a float
    def to_representation(self, value: float) -> float:  # type: ignore[override]
        return round(self.times * value / self.unit, self.decimals)


class HealthSerializer(serializers.Serializer[Any]):
    """State of this server and of the device that a run gets by default."""

    status = serializers.ChoiceField(["healthy"])
    gpu_available = serializers.BooleanField()
    gpu_name = serializers.CharField(source="gpu.name", allow_null=True)
    gpu_memory_total_gb = Rounded("gpu.capacity_bytes", unit=GIB, help_text="Memory of the GPU in GiB, rounded.")
    device = serializers.CharField(source="device.kind", allow_null=True)
    timestamp = serializers.DateTimeField(format="%Y-%m-%dT%H:%M:%S.%fZ")
    gpu_memory_total_bytes = Whole(source="gpu.capacity_bytes")
    version = serializers.CharField(help_text="Version of MemoryMark that this server runs.")


class ClassicModelSerializer(serializers.Serializer[Any]):
    """A model that can be analysed."""

    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    type = serializers.SerializerMethodField(help_text="Kind of model: nlp or vision.")
    task = serializers.CharField(help_text="Task of the training: text-classification or image-classification.")
    huggingface_id = serializers.CharField(allow_null=True)

    def get_type(self, workload: Workload) -> str:
        return "nlp" if workload.is_text else "vision"


class ClassicModelsSerializer(serializers.Serializer[Any]):
    """All models that can be analysed."""

    models = ClassicModelSerializer(many=True)


class AnalyzeBodySerializer(serializers.Serializer[Any]):
    """`model_name`, `device_class`, and every key of a spec except `model`: see /api/v1/settings/."""

    model_name = serializers.CharField(help_text="Id of a model in /models.")


class AnalyzedSizeSerializer(serializers.Serializer[Any]):
    """A tested batch size. `_mb` is MiB, `_gb` is GiB, both rounded."""

    batch_size = serializers.IntegerField()
    memory_bytes = Whole()
    memory_mb = Rounded("memory_bytes", unit=MIB)
    memory_gb = Rounded("memory_bytes", unit=GIB)
    success = serializers.BooleanField(source="fits")
    error = serializers.SerializerMethodField()

    def get_error(self, probe: Probe) -> str | None:
        return None if probe.fits else probe.error_message or probe.outcome.value.replace("_", " ")


class ExactFiguresSerializer(serializers.Serializer[Measured]):
    """The measured figures, not rounded, with the names of version 1."""

    capacity_bytes = Whole(source="waste.capacity_bytes")
    recommended_memory_bytes = Whole(source="recommended.memory_bytes")
    current_memory_bytes = Whole(source="current.memory_bytes")
    waste_bytes = Whole(source="waste.at_recommended_bytes")
    waste_fraction = Exact(source="waste.at_recommended_fraction")
    current_waste_bytes = Whole(source="waste.at_current_bytes")
    current_waste_fraction = Exact(source="waste.at_current_fraction")
    speedup = Exact()
    speedup_low = Exact()
    speedup_high = Exact()
    batch_size_ratio = Exact()
    saving_per_run_usd = Exact(source="savings.per_run_usd")
    saving_per_year_usd = Exact(source="savings.per_year_usd")
    saving_per_run_usd_low = Exact(source="savings.per_run_usd_low")
    saving_per_year_usd_low = Exact(source="savings.per_year_usd_low")


class AnalyzedSerializer(serializers.Serializer[Measured]):
    """The measured figures. `_gb` is GiB; figures are rounded; null means not measured."""

    # where only the least speed-up is claimed, `speedup` and money are null and their lower ends stand under `exact`;
    # the contract's waste is at the optimal batch size, and `current_waste_*`, which we add, at the current one
    run_id = serializers.SerializerMethodField()
    model_name = serializers.CharField(source="spec.model")
    device = serializers.CharField(source="device.kind")
    gpu_total_gb = Rounded("waste.capacity_bytes", unit=GIB)
    results = serializers.SerializerMethodField()
    optimal_batch_size = Whole(source="recommended.batch_size")
    optimal_memory_gb = Rounded("recommended.memory_bytes", unit=GIB)
    current_batch_size = serializers.IntegerField()
    current_memory_gb = Rounded("current.memory_bytes", unit=GIB)
    waste_gb = Rounded("waste.at_recommended_bytes", unit=GIB)
    waste_percent = Rounded("waste.at_recommended_fraction", times=100)
    current_waste_gb = Rounded("waste.at_current_bytes", unit=GIB)
    current_waste_percent = Rounded("waste.at_current_fraction", times=100)
    speedup = Rounded()
    batch_size_ratio = Rounded()
    cost_savings_per_run = Rounded("savings.per_run_usd", decimals=2)
    cost_savings_annual = Rounded("savings.per_year_usd", decimals=2)
    certified = serializers.BooleanField(source="boundary.certified")
    exact = ExactFiguresSerializer(source="*")

    def get_run_id(self, found: Measured) -> int:
        return int(self.context["run_id"])

    @extend_schema_field(AnalyzedSizeSerializer(many=True))
    def get_results(self, found: Measured) -> Any:
        return AnalyzedSizeSerializer([*decisive_probes(found.probes).values()], many=True).data


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


def health_data(device: Device | None, now: datetime) -> dict[str, Any]:
    """Return the data of `GET /health`, of the device that a run gets by default. Without a device: null, not "cpu"."""
    gpu = device if device and device.kind != "cpu" else None
    facts = {"status": "healthy", "gpu_available": gpu is not None, "timestamp": now, "version": __version__}
    return HealthSerializer({**facts, "gpu": gpu, "device": device}).data


def models_data() -> list[dict[str, Any]]:
    """Return the data of `GET /models`, the three models of the contract first."""
    return list(ClassicModelSerializer([*WORKLOADS.values()], many=True).data)


def analysis_data(result: Mapping[str, Any], *, run_id: int) -> dict[str, Any]:
    """Convert `RunResult.to_dict()` to the `data` of `POST /analyze`."""
    return AnalyzedSerializer(Measured.from_dict(result), context={"run_id": run_id}).data
