"""The admin panel: devices can be priced and switched off; what was measured can be read, never edited."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Field, Model, Q, QuerySet
from django.forms import ChoiceField, ModelForm
from django.http import HttpRequest

from analysis import services
from analysis.catalogue import gpu_choices, gpu_name, validate_gpu
from analysis.comparison.tables import TrendAcknowledgement
from analysis.matrix.tables import MatrixCell
from analysis.models import Attempt, Device, GpuPrice, Host, Measurement, Run, RunLog, RunWord, SavedView, Tag


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
        "calibration",
        "calibrated_at",
    )
    fields = (*readonly_fields, "price_per_hour_usd", "enabled", *UPKEEP, "allowed_users", "allowed_groups")


@admin.register(GpuPrice)
class GpuPriceAdmin(admin.ModelAdmin):
    """What the lab pays for a card: it stands in for the catalogue's first value in every estimate."""

    list_display = ("card", "price_per_hour_usd", "source", "valid_from", "updated_by", "updated_at")
    list_editable = ("price_per_hour_usd", "source", "valid_from")
    list_select_related = ("updated_by",)
    readonly_fields = ("updated_by", "updated_at")

    @admin.display(ordering="gpu")
    def card(self, price: GpuPrice) -> str:
        return gpu_name(price.gpu)

    def formfield_for_dbfield(self, db_field: Field, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name != "gpu":
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        cards = [group for group in gpu_choices() if not isinstance(group[1], str)]
        return ChoiceField(label=db_field.verbose_name, choices=cards, validators=[validate_gpu])

    def save_model(self, request: HttpRequest, obj: GpuPrice, form: ModelForm, change: bool) -> None:
        obj.updated_by = request.user
        super().save_model(request, obj, form, change)


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
        "kind",
        "model",
        "device",
        "gpu",
        "state",
        "priority",
        "requested_by",
        "created_at",
        "largest_batch_size",
        "certified",
        "estimated_largest_batch_size",
    )
    list_filter = ("kind", "state", "priority", "model", "precision", "device")
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


@admin.register(Tag)
class TagAdmin(ReadOnly):
    """The words people put on runs."""

    list_display = ("name",)
    search_fields = ("name",)


@admin.register(RunWord)
class RunWordAdmin(ReadOnly):
    """What a text search finds a run by, beside its model and its GPU."""

    list_display = ("word", "run")
    list_select_related = ("run",)
    search_fields = ("word",)


@admin.register(SavedView)
class SavedViewAdmin(ReadOnly):
    """Views of the history that people keep. Whoever may delete them here tidies up after people who left."""

    list_display = ("name", "owner", "is_shared", "query", "created_at")
    list_filter = ("is_shared",)
    list_select_related = ("owner",)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("analysis.delete_savedview")


@admin.register(MatrixCell)
class MatrixCellAdmin(ReadOnly):
    """The newest answer per card, workload and settings; written when a run ends."""

    list_display = ("model", "card_name", "kind", "precision", "optimizer", "largest_batch_size", "run", "answered_at")
    list_filter = ("kind", "precision", "optimizer")
    list_select_related = ("run",)


@admin.register(TrendAcknowledgement)
class TrendAcknowledgementAdmin(ReadOnly):
    """What people said of the steps in a trend."""

    list_display = ("run", "metric", "note", "acknowledged_by", "acknowledged_at")
    list_select_related = ("run", "acknowledged_by")
