"""Devices and hosts, whose workers report the facts: people set price, availability and access; and prices of cards."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.forms import ChoiceField, ModelForm
from django.http import HttpRequest

from analysis.admin.lists import Managed, ProtectReferencedAdmin
from analysis.formatting import bytes_text
from analysis.models import Attempt, Device, GpuPrice, Host, Quota, Run
from analysis.permissions import signed_in_user
from analysis.runs import services
from analysis.runs.bulk import ids_of
from analysis.runs.gpu_catalog import gpu_choices, gpu_name, validate_gpu

_UNKNOWN = "not measured"
UPKEEP = ("drained", "maintenance_from", "maintenance_until", "maintenance_note")


class RegisteredByWorkers(Managed):
    may = ("change", "delete")
    actions: tuple[str, ...] = ("drain", "undrain")

    @admin.action(description="Drain: take no new runs, let running ones end", permissions=["change"])
    def drain(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        count = services.maintenance_set_drained(model=rows.model, ids=ids_of(rows), drained=True)
        self.message_user(request, f"{count} drained. Running runs are left to end.")

    @admin.action(description="Take new runs again", permissions=["change"])
    def undrain(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        count = services.maintenance_set_drained(model=rows.model, ids=ids_of(rows), drained=False)
        self.message_user(request, f"{count} can take runs again.")


@admin.register(Host)
class HostAdmin(RegisteredByWorkers):
    list_display = ("name", "drained", "maintenance_from", "maintenance_until", "maintenance_note", "registered_at")
    list_filter = ("drained",)
    search_fields = ("name",)
    fields = ("name", "registered_at", *UPKEEP)
    readonly_fields = ("name", "registered_at")

    def has_delete_permission(self, request: HttpRequest, obj: Host | None = None) -> bool:
        """Allow deletion only for a host without devices, because measurements refer to the host."""
        is_empty = obj is None or not Device.all_devices.filter(host=obj).exists()
        return super().has_delete_permission(request, obj) and is_empty


@admin.register(Device)
class DeviceAdmin(ProtectReferencedAdmin, RegisteredByWorkers):
    list_display = (
        *("device", "name", "host", "capacity", "price_per_hour_usd", "enabled", "drained", "maintenance_note"),
        *("queue_name", "last_seen_at", "is_reported"),
    )
    named_by = ((Quota, "devices"),)
    list_filter = ("kind", "enabled", "drained", "is_reported")
    list_select_related = ("host",)
    search_fields = ("name", "host__name", "uuid")
    search_help_text = "Name of the device, its host or its UUID."
    autocomplete_fields = ("allowed_users",)
    filter_horizontal = ("allowed_groups",)
    actions = ("enable", "disable", *RegisteredByWorkers.actions, "calibrate")
    facts = (
        *("host", "device", "kind", "name", "uuid", "capacity", "driver", "compute_capability"),
        *("queue_name", "last_seen_at", "memory_used", "foreign_used", "calibrated", "is_reported"),
    )
    readonly_fields = facts
    fieldsets = (
        ("Use", {"fields": ("price_per_hour_usd", "enabled", *UPKEEP)}),
        ("Who may use it", {"fields": ("allowed_users", "allowed_groups")}),
        ("Reported by its worker", {"fields": facts}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Device]:
        return Device.all_devices.select_related("host").order_by("host__name", "device", "pk")

    def has_delete_permission(self, request: HttpRequest, obj: Device | None = None) -> bool:
        """Allow deletion only for a device without runs: to list what goes with it, Django would read them all."""
        is_unused = obj is None or not (
            Run.all_runs.filter(Q(device=obj)).exists()
            or Run.all_runs.filter(requested_device=obj).exists()
            or Attempt.objects.filter(device=obj).exists()
        )
        return super().has_delete_permission(request, obj) and is_unused

    @admin.action(description="Enable: take new runs", permissions=["change"])
    def enable(self, request: HttpRequest, devices: QuerySet[Device]) -> None:
        count = services.devices_set_enabled(device_ids=ids_of(devices), enabled=True)
        self.message_user(request, f"{count} enabled.")

    @admin.action(description="Disable: take no runs, and refuse runs that request it", permissions=["change"])
    def disable(self, request: HttpRequest, devices: QuerySet[Device]) -> None:
        count = services.devices_set_enabled(device_ids=ids_of(devices), enabled=False)
        self.message_user(request, f"{count} disabled. Running runs are left to end.")

    @admin.action(description="Calibrate: how to", permissions=["change"])
    def calibrate(self, request: HttpRequest, devices: QuerySet[Device]) -> None:
        """Show the command: a card can only be calibrated on its own host, while no other process uses it."""
        for device in devices.select_related("host"):
            if device.kind == "cuda":
                command = f"python manage.py calibrate --device {device.uuid or device.device}"
                self.message_user(
                    request, f"{device}: on {device.host}, while no run uses it: {command}", messages.INFO
                )
            else:
                self.message_user(request, f"{device}: this device cannot be calibrated.", messages.WARNING)

    @admin.display(description="memory", ordering="capacity_bytes")
    def capacity(self, device: Device) -> str:
        return bytes_text(device.capacity_bytes)

    @admin.display(description="queue")
    def queue_name(self, device: Device) -> str:
        return device.queue_name

    @admin.display(description="memory in use")
    def memory_used(self, device: Device) -> str:
        if device.memory_used_bytes is None:
            return _UNKNOWN
        return f"{bytes_text(device.memory_used_bytes)}, read {device.memory_read_at:%Y-%m-%d %H:%M:%S} UTC"

    @admin.display(description="memory held by other processes")
    def foreign_used(self, device: Device) -> str:
        return _UNKNOWN if device.foreign_used_bytes is None else bytes_text(device.foreign_used_bytes)

    @admin.display(description="calibration")
    def calibrated(self, device: Device) -> str:
        """Show the size of the context, the main figure; the others are constants of single libraries."""
        if not device.calibration or device.calibrated_at is None:
            return "none: estimates for such GPUs use default figures"
        context = device.calibration.get("context_bytes")
        text = f"context {bytes_text(context)}" if context is not None else f"{len(device.calibration)} figures"
        return f"{text}, measured {device.calibrated_at:%Y-%m-%d %H:%M} UTC"


@admin.register(GpuPrice)
class GpuPriceAdmin(Managed):
    """The lab's price, which replaces the catalogue's in every estimate."""

    list_display = ("card", "price_per_hour_usd", "source", "valid_from", "updated_by", "updated_at")
    list_select_related = ("updated_by",)
    readonly_fields = ("updated_by", "updated_at")

    @admin.display(ordering="gpu", description="GPU")
    def card(self, price: GpuPrice) -> str:
        return gpu_name(price.gpu)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name != "gpu":
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        cards = [group for group in gpu_choices() if not isinstance(group[1], str)]
        return ChoiceField(label=db_field.verbose_name, choices=cards, validators=[validate_gpu])

    def save_model(self, request: HttpRequest, obj: GpuPrice, form: ModelForm[GpuPrice], change: bool) -> None:
        obj.updated_by = signed_in_user(request)
        super().save_model(request, obj, form, change)
