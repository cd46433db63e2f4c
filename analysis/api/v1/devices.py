"""The devices of all hosts: what they are, whether they take runs, how full they are. Calibrations are not shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.generics import GenericAPIView, ListAPIView, RetrieveAPIView

from analysis.api.v1.paging import Keyset
from analysis.api.v1.serializer_bases import Query
from analysis.api.v1.strict_view import StrictView
from analysis.models import Device, Run
from analysis.models.querysets import SEEN_LATELY
from analysis.runs.gpu_catalog import gpu_of

if TYPE_CHECKING:
    from analysis.models.querysets import DeviceWithActivity
else:
    DeviceWithActivity = Device  # drf-spectacular evaluates the annotations of a serializer's methods


class DeviceSerializer(serializers.ModelSerializer[Device]):
    """A device as its worker registered it and last read it."""

    host = serializers.CharField(source="host.name")
    gpu = serializers.SerializerMethodField(help_text="Its card in /api/v1/gpus/; null for what is not in it.")
    drained = serializers.SerializerMethodField(help_text="It or its host takes no new run.")
    maintenance_note = serializers.SerializerMethodField(help_text="Its own, else its host's.")
    takes_runs = serializers.SerializerMethodField(
        help_text="Its worker lives (`is_alive`), and itself and its host are enabled, not drained, not in maintenance."
    )
    is_alive = serializers.SerializerMethodField(help_text="Its worker gave a sign of life in the last minute.")
    memory_age_seconds = serializers.SerializerMethodField(help_text="How old the figure of the memory in use is.")
    is_calibrated = serializers.SerializerMethodField(help_text="Estimates use constants measured on this card.")
    running_run = serializers.IntegerField(
        source="running_id", allow_null=True, help_text="The id of the run that it runs now."
    )
    waiting_count = serializers.SerializerMethodField(help_text="Runs in the queue that ask for this very device.")

    class Meta:
        model = Device
        fields = (
            *("id", "host", "device", "kind", "name", "gpu", "uuid", "driver", "compute_capability", "capacity_bytes"),
            *("price_per_hour_usd", "enabled", "drained", "takes_runs", "is_alive", "last_seen_at"),
            *("maintenance_from", "maintenance_until", "maintenance_note", "memory_used_bytes", "memory_read_at"),
            *("memory_age_seconds", "foreign_used_bytes", "is_calibrated", "calibrated_at"),
            *("running_run", "waiting_count"),
        )

    def get_gpu(self, device: Device) -> str | None:
        gpu = gpu_of(device)
        return gpu.id if gpu else None

    def get_drained(self, device: Device) -> bool:
        return device.drained or device.host.drained

    def get_maintenance_note(self, device: Device) -> str:
        return device.maintenance_note or device.host.maintenance_note

    def get_is_alive(self, device: Device) -> bool:
        seen_at = device.last_seen_at
        return seen_at is not None and timezone.now() - seen_at <= SEEN_LATELY

    def get_memory_age_seconds(self, device: Device) -> float | None:
        return _age_seconds(device.memory_read_at)

    def get_takes_runs(self, device: Any) -> bool:  # a DeviceWithActivity; the schema evaluates what stands here
        # for a program one answer is enough: a device whose worker is silent takes nothing, whatever its settings say
        return bool(device.takes_runs and device.is_up)

    def get_is_calibrated(self, device: Device) -> bool:
        return device.calibrated_at is not None

    def get_waiting_count(self, device: Device) -> int:
        """Look it up: the view asks once for all devices that it shows."""
        return int(self.context["waiting"][device.pk])


class DeviceQuery(Query):
    """Which devices."""

    host = serializers.CharField(required=False, help_text="The name of a host.")
    kind = serializers.ChoiceField(["cuda", "xpu", "mps", "cpu"], required=False)
    enabled = serializers.BooleanField(required=False)


class _Devices(StrictView, GenericAPIView[Device]):
    """What list and detail share."""

    serializer_class = DeviceSerializer
    queryset = Device.objects.none()

    def get_queryset(self) -> QuerySet[DeviceWithActivity]:
        return Device.objects.select_related("host").defer("calibration").with_activity()

    def get_serializer(self, shown: Any = None, **kwargs: Any) -> DeviceSerializer:
        devices = shown if kwargs.get("many") else [shown]
        context = {**self.get_serializer_context(), "waiting": _waiting(devices) if shown else {}}
        return DeviceSerializer(shown, **{**kwargs, "context": context})


@extend_schema_view(get=extend_schema(tags=["fleet"], operation_id="devices_list", parameters=[DeviceQuery]))
class DeviceList(_Devices, ListAPIView[Device]):
    """Every device that ever registered here, oldest first."""

    pagination_class = Keyset
    ordering = ("id",)
    query_parameters = DeviceQuery.names()

    def get_queryset(self) -> QuerySet[DeviceWithActivity]:
        parameters = DeviceQuery.of(self.request)
        names = {"host": "host__name", "kind": "kind", "enabled": "enabled"}
        return super().get_queryset().filter(**{names[name]: value for name, value in parameters.items()})


@extend_schema_view(get=extend_schema(tags=["fleet"], operation_id="devices_retrieve"))
class DeviceDetail(_Devices, RetrieveAPIView[Device]):
    """One device."""


def _waiting(devices: Iterable[Device]) -> Counter[int]:
    """By device. Counted here: grouped by the database, SQLite walks the whole history for it."""
    queue = Run.objects.measuring().queued().filter(cancel_requested=False, requested_device__in=list(devices))
    return Counter(queue.order_by().values_list("requested_device", flat=True))


def _age_seconds(at: datetime | None) -> float | None:
    return None if at is None else (timezone.now() - at).total_seconds()
