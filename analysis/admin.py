"""The admin panel: devices can be priced and switched off; what was measured can be read, never edited."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from analysis.models import Device, Measurement, Run, RunLog


class ReadOnly(admin.ModelAdmin):
    """Rows that only services write."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Device)
class DeviceAdmin(admin.ModelAdmin):
    """The GPU fleet. Facts come from the host itself; people decide on price and use."""

    list_display = ("device", "name", "host", "capacity_bytes", "price_per_hour_usd", "enabled", "last_seen_at")
    list_editable = ("price_per_hour_usd", "enabled")
    list_filter = ("host", "kind", "enabled")
    readonly_fields = (
        "host",
        "device",
        "kind",
        "name",
        "uuid",
        "capacity_bytes",
        "driver",
        "compute_capability",
        "last_seen_at",
        "memory_used_bytes",
        "memory_read_at",
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


@admin.register(Run)
class RunAdmin(ReadOnly):
    """Every run of every person."""

    list_display = ("id", "model", "device", "state", "requested_by", "created_at", "largest_batch_size", "certified")
    list_filter = ("state", "model", "precision", "device")
    list_select_related = ("device", "requested_by")
    search_fields = ("model", "device_name", "error_message")


@admin.register(Measurement)
class MeasurementAdmin(ReadOnly):
    """Probes as they were measured."""

    list_display = ("id", "run", "attempt", "sequence", "batch_size", "outcome", "purpose", "peak_allocated_bytes")
    list_filter = ("outcome", "purpose")
    list_select_related = ("run",)


@admin.register(RunLog)
class RunLogAdmin(ReadOnly):
    """What engines and supervisors said."""

    list_display = ("id", "run", "attempt", "sequence", "recorded_at", "level", "message")
    list_filter = ("level",)
    list_select_related = ("run",)
