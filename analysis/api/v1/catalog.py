"""The index; and the catalogue: models, settings of a run as a JSON Schema, and cards for estimates."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.run_bodies import input_schema, run_schema, settings_of
from analysis.api.v1.base.openapi_parameters import listed
from analysis.api.v1.base.views import StrictView
from analysis.runs.gpu_catalog import Price, prices
from engine import __version__
from engine.estimate.gpus import gpus
from engine.settings.catalog import TASK_LABELS, WORKLOADS, Workload

VERSION = "1"


class RootSerializer(serializers.Serializer[Any]):
    """The index of version 1."""

    name = serializers.CharField()
    version = serializers.CharField(help_text="Version of the API. It changes only with an incompatible change.")
    software_version = serializers.CharField(help_text="Version of MemoryMark that this server runs.")
    links = serializers.DictField(child=serializers.URLField(), help_text="URLs of the lists, by name.")


class Root(StrictView):
    names: tuple[str, ...] = ()

    @extend_schema(tags=["index"], operation_id="index", responses=RootSerializer)
    def get(self, request: Request) -> Response:
        """Return the URLs of all lists."""
        links = {name.rstrip("/"): request.build_absolute_uri(name) for name in self.names}
        return Response({"name": "MemoryMark", "version": VERSION, "software_version": __version__, "links": links})


class ModelSerializer(serializers.Serializer[Any]):
    """A workload: an architecture with its task and input."""

    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    task = serializers.ChoiceField(list(TASK_LABELS))
    library = serializers.CharField()
    parameter_count = serializers.IntegerField()
    label_count = serializers.IntegerField(allow_null=True, help_text="Classes; null where the task has none.")
    huggingface_id = serializers.CharField(allow_null=True)
    settings = serializers.SerializerMethodField(help_text="Fields of /api/v1/settings/ that apply to this model.")
    input_field = serializers.CharField(help_text="Name of the setting for the input size.")
    input = serializers.SerializerMethodField(help_text="JSON Schema of the setting for the input size.")

    def get_settings(self, workload: Workload) -> list[str]:
        return settings_of(workload)

    def get_input(self, workload: Workload) -> dict[str, int]:
        return input_schema(workload)


class PriceSerializer(serializers.Serializer[Price]):
    """The price per hour: an assumption, with its source."""

    per_hour_usd = serializers.FloatField()
    # a declared field: the metaclass takes it off the class, where the stubs expect `Field.source`
    source = serializers.CharField()  # type: ignore[assignment]
    date = serializers.CharField(help_text="Date of the source.")
    is_own = serializers.BooleanField(source="is_of_lab", help_text="Whether this lab's GPU managers set the price.")


class GpuSerializer(serializers.Serializer[Any]):
    """A card of the catalogue. Peak figures are the vendor's, without sparsity; null means unknown."""

    id = serializers.CharField()
    name = serializers.CharField()
    vendor = serializers.ChoiceField(["nvidia", "amd"])
    total_bytes = serializers.IntegerField()
    is_total_exact = serializers.BooleanField(
        help_text="Whether the total was read from such a GPU, and not from the vendor's data."
    )
    total_source = serializers.CharField(allow_null=True)
    compute_capability = serializers.CharField(allow_null=True)
    context_bytes = serializers.IntegerField(help_text="Memory that the driver takes for a process, before any tensor.")
    cublas_workspace_bytes = serializers.IntegerField()
    memory_bandwidth_bytes_per_second = serializers.FloatField(allow_null=True)
    dense_tflops = serializers.DictField(
        child=serializers.FloatField(), help_text="Dense peak performance in TFLOPS, by precision."
    )
    torch_names = serializers.ListField(child=serializers.CharField())
    price = PriceSerializer(allow_null=True)


class ModelList(StrictView):
    @extend_schema(responses=listed("ModelList", ModelSerializer))
    def get(self, request: Request) -> Response:
        """List all models that can be measured or estimated."""
        return Response({"results": ModelSerializer([*WORKLOADS.values()], many=True).data})


class SettingsSchema(StrictView):
    @extend_schema(operation_id="settings_schema", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        """Return the JSON Schema (2020-12) of a run's request body: types, ranges, choices, defaults, units."""
        return Response(run_schema())


class GpuList(StrictView):
    @extend_schema(responses=listed("GpuList", GpuSerializer))
    def get(self, request: Request) -> Response:
        """List all cards of the catalogue, with their prices where known."""
        price_of = prices()
        cards = [{**gpu.to_dict(), "price": price_of.get(gpu.id)} for gpu in gpus().values()]
        return Response({"results": GpuSerializer(cards, many=True).data})
