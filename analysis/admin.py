"""The admin panel: devices can be priced and switched off; what was measured can be read, never edited."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from analysis import services
from analysis.models import Attempt, Device, Host, Measurement, Run, RunLog


class ReadOnly(admin.ModelAdmin):
    """Rows that only services write."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


UPKEEP = ("drained", "maintenance_from", "maintenance_until", "maintenance_note")


class FoundByTheirWorkers(admin.ModelAdmin):
    """Hosts and devices: facts come from the host itself; people decide on their use."""

    actions = ("drain", "undrain")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @admin.action(description="Drain: take no new run, let what runs end", permissions=["change"])
    def drain(self, request: HttpRequest, rows: QuerySet[Model]) -> None:
        self.message_user(request, f"{rows.update(drained=True)} drained. What runs there is left to end.")

    @admin.action(description="Take new runs again", permissions=["change"])
    def undrain(self, request: HttpRequest, rows: QuerySet[Model]) -> None:
        self.message_user(request, f"{rows.update(drained=False)} may take runs again.")
        is_one_of_them = Q(host__in=rows) if rows.model is Host else Q(pk__in=rows)
        for device in Device.objects.enabled().filter(is_one_of_them):
            services.worker_wake(device=device)


@admin.register(Host)
class HostAdmin(FoundByTheirWorkers):
    """The machines."""

    list_display = ("name", "drained", "maintenance_from", "maintenance_until", "maintenance_note", "registered_at")
    list_filter = ("drained",)
    fields = ("name", "registered_at", *UPKEEP)
    readonly_fields = ("name", "registered_at")


@admin.register(Device)
class DeviceAdmin(FoundByTheirWorkers):
    """The GPU fleet. People decide on price, use and who may use it."""

    list_display = (
        "device",
        "name",
        "host",
        "capacity_bytes",
        "price_per_hour_usd",
        "enabled",
        "drained",
        "last_seen_at",
    )
    list_editable = ("price_per_hour_usd", "enabled")
    list_filter = ("host", "kind", "enabled", "drained")
    list_select_related = ("host",)
    filter_horizontal = ("allowed_users", "allowed_groups")
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
        "foreign_used_bytes",
    )
    fields = (*readonly_fields, "price_per_hour_usd", "enabled", *UPKEEP, "allowed_users", "allowed_groups")


class AttemptInline(admin.TabularInline):
    """Each execution of a run, as it was."""

    model = Attempt
    fields = ("number", "device", "owner", "started_at", "ended_at", "outcome", "cause", "counted", "exit_status")
    readonly_fields = fields
    can_delete = False
    extra = 0

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        return super().get_queryset(request).select_related("device__host")

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Run)
class RunAdmin(ReadOnly):
    """Every run of every person."""

    list_display = (
        "id",
        "model",
        "device",
        "state",
        "priority",
        "requested_by",
        "created_at",
        "largest_batch_size",
        "certified",
    )
    list_filter = ("state", "priority", "model", "precision", "device")
    list_select_related = ("device__host", "requested_by")
    search_fields = ("model", "device_name", "error_message")
    inlines = (AttemptInline,)
    actions = ("cancel",)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """To stop a run is no edit of it: who may see all runs here, and change runs, may stop them."""
        return request.user.has_perm("analysis.change_run")

    @admin.action(description="Cancel", permissions=["cancel"])
    def cancel(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        count = services.runs_cancel(run_ids=list(runs.values_list("pk", flat=True)))
        self.message_user(request, f"{count} cancelled or asked to stop; the others were over.")


@admin.register(Attempt)
class AttemptAdmin(ReadOnly):
    """Every execution of a run, and why it gave no result if it gave none."""

    list_display = ("id", "run", "number", "device", "owner", "started_at", "ended_at", "outcome", "cause", "counted")
    list_filter = ("outcome", "cause", "counted")
    list_select_related = ("run", "device__host")


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
