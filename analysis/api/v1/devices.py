"""The devices of all hosts: properties, availability and memory in use. Calibrations are not shown."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from analysis.api.v1.base.views import PageForm, Resource
from analysis.http.query_string import FlagField
from analysis.models import Device
from analysis.models.device import DeviceWithActivity
from analysis.presentation.device_cards import holder_text
from analysis.runs.gpu_catalog import gpu_of
from analysis.runs.queue.queue_now import waiting_by_device
from engine.settings.workload_settings import DEVICE_KINDS


class DeviceSerializer(serializers.ModelSerializer[Device]):
    """A device, with the facts that its worker reported last."""

    host = serializers.CharField(source="host.name")
    gpu = serializers.SerializerMethodField(help_text="Id of the GPU in /api/v1/gpus/; null if it is not there.")
    drained = serializers.SerializerMethodField(
        help_text="Whether the device or its host is drained: it takes no new runs."
    )
    maintenance_note = serializers.SerializerMethodField(help_text="Note of the device, or else of its host.")
    takes_runs = serializers.SerializerMethodField(
        help_text="Whether it takes runs: alive, enabled, and neither it nor its host drained or in maintenance."
    )
    is_alive = serializers.BooleanField(
        source="is_up", read_only=True, help_text="Whether its worker gave a sign of life in the last minute."
    )
    memory_age_seconds = serializers.SerializerMethodField(help_text="Age of the figure of memory in use.")
    is_calibrated = serializers.SerializerMethodField(help_text="Whether estimates use constants measured on this GPU.")
    running_run = serializers.IntegerField(
        source="running_id", allow_null=True, help_text="Id of the run that it executes now."
    )
    held_by = serializers.SerializerMethodField(
        help_text="Work and process of a program that holds it and is no run of this portal, as its lock names them, "
        "read with `last_seen_at`; any program of that machine may have written it. null: none."
    )
    waiting_count = serializers.SerializerMethodField(
        help_text="Number of queued runs that request this device by name."
    )

    class Meta:
        model = Device
        fields = (
            *("id", "host", "device", "kind", "name", "gpu", "uuid", "driver", "compute_capability", "capacity_bytes"),
            *("price_per_hour_usd", "enabled", "drained", "takes_runs", "is_alive", "last_seen_at"),
            *("maintenance_from", "maintenance_until", "maintenance_note", "memory_used_bytes", "memory_read_at"),
            *("memory_age_seconds", "foreign_used_bytes", "is_calibrated", "calibrated_at"),
            *("running_run", "held_by", "held_since", "waiting_count"),
        )

    def get_gpu(self, device: Device) -> str | None:
        gpu = gpu_of(device)
        return gpu.id if gpu else None

    def get_drained(self, device: Device) -> bool:
        return device.drained or device.host.drained

    def get_maintenance_note(self, device: Device) -> str:
        return device.maintenance_note or device.host.maintenance_note

    def get_memory_age_seconds(self, device: Device) -> float | None:
        read_at = device.memory_read_at
        return None if read_at is None else (timezone.now() - read_at).total_seconds()

    def get_takes_runs(self, device: Any) -> bool:  # a DeviceWithActivity; drf-spectacular evaluates this annotation
        # one field for programs: a device whose worker is silent takes no runs, whatever its settings
        return bool(device.takes_runs and device.is_up)

    def get_held_by(self, device: Device) -> str | None:
        return holder_text(device) or None

    def get_is_calibrated(self, device: Device) -> bool:
        return device.calibrated_at is not None

    def get_waiting_count(self, device: Device) -> int:
        """Look up the count, which the view reads for all its devices at once."""
        return int(self.context["waiting"][device.pk])


class DeviceForm(PageForm):
    host = forms.CharField(required=False, help_text="Name of a host.")
    kind = forms.ChoiceField(choices=[(kind, kind) for kind in DEVICE_KINDS], required=False)
    enabled = FlagField(required=False)


@extend_schema_view(retrieve=extend_schema(description="One device."))
class Devices(Resource[Device]):
    """All devices that were ever registered, oldest first."""

    serializer_class = DeviceSerializer
    queryset = Device.objects.none()
    ordering = ("id",)
    query_form = DeviceForm
    lookups = {"host": "host__name", "kind": "kind", "enabled": "enabled"}

    def get_queryset(self) -> QuerySet[DeviceWithActivity]:
        return Device.objects.select_related("host").defer("calibration").with_activity()

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "waiting": SimpleLazyObject(waiting_by_device)}
