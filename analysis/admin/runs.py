"""All runs of all people: read, cancel, repeat, pin, delete; and what belongs to them. No figure can be edited."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from analysis.admin.lists import ConditionFilter, ReadOnly, RunChildAdmin, choice_of, ended, filter_of, on_ticked
from analysis.audit.record import record
from analysis.http.query_string import is_row_id
from analysis.lists.runs.actions import ACTIONS
from analysis.lists.runs.export import run_file
from analysis.lists.runs.filters import ORIGINS, checked_words
from analysis.models import (
    KIND_CHOICES,
    Attempt,
    Device,
    MatrixCell,
    Measurement,
    Run,
    RunLog,
    ShareLink,
    State,
    Tag,
    TrendAcknowledgement,
)
from analysis.permissions import signed_in_user
from analysis.presentation.kinds import run_place
from analysis.presentation.labels import model_name, short_device_name
from analysis.presentation.origin import Origin
from analysis.runs.bulk import ids_of
from analysis.runs.columns.run_text import with_words
from analysis.runs.marks.share_links import share_link_withdraw
from engine.settings.catalog import WORKLOADS

PROBES_SHOWN, ATTEMPTS_SHOWN = 200, 50
_NEWEST = ("-created_at", "-id")


class ByDevice(ConditionFilter):
    title = parameter_name = "device"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(device.pk), str(device)) for device in Device.objects.select_related("host")[:100]]

    def conditions(self) -> dict[str, tuple[str, Q]]:
        value = self.value() or ""
        return {value: ("", Q(device=int(value)))} if is_row_id(value) else {}


class Deleted(ConditionFilter):
    title = parameter_name = "deleted"

    def conditions(self) -> dict[str, tuple[str, Q]]:
        return {"yes": ("deleted, can be restored", Q(deleted_at__isnull=False))}

    def queryset(self, request: HttpRequest, runs: QuerySet[Run]) -> QuerySet[Run]:
        return runs.filter(deleted_at=None) if self.value() is None else super().queryset(request, runs)


_MARKS = {"baseline": ("baselines", Q(is_baseline=True)), "shared": ("on a shared device", Q(is_shared=True))}


def _action(name: str, description: str = "") -> Any:
    action = ACTIONS[name]

    @admin.action(description=description or action.label, permissions=["view"])
    def act(panel: RunAdmin, request: HttpRequest, runs: QuerySet[Run]) -> None:
        answer = action.do(run_ids=ids_of(runs), by=signed_in_user(request))
        panel.message_user(request, action.describe(answer), messages.SUCCESS if answer.done else messages.WARNING)

    return act


@admin.register(Run)
class RunAdmin(ReadOnly):
    """Newest first. The list loads no result and no spec."""

    list_display = (
        *("id", "trained", "kind", "state", "place", "requested_by", "origin", "created_at"),
        *("largest", "recommended_batch_size", "priority", "baseline"),
    )
    list_filter = (
        *(choice_of("state", State.choices), choice_of("kind", KIND_CHOICES)),
        choice_of("model", [(key, model_name(key)) for key in WORKLOADS]),
        *(ByDevice, filter_of("origin", ORIGINS), filter_of("mark", _MARKS), Deleted),
    )
    sortable_by = ()
    ordering = _NEWEST
    search_fields = ("id",)
    search_help_text = "A run’s number, a person’s name, or text in its name, note, model or GPU."
    actions = ("cancel", "retry", "pin", "unpin", "soft_delete", "restore", "export_csv", "export_json")
    fieldsets = (
        (
            "Run",
            {"fields": ("page", "state", "kind", "model", "place", "requested_by", "origin", "is_trusted", "priority")},
        ),
        ("Times (UTC)", {"fields": ("created_at", "started_at", "finished_at", "heartbeat_at", "deleted_at")}),
        (
            "Result",
            {
                "fields": (
                    *("largest_batch_size", "certified", "boundary_reason", "recommended_batch_size"),
                    *("speedup", "speedup_low", "speedup_high", "is_speed_measurable"),
                    *("saving_per_year_usd", "saving_per_year_usd_low", "saving_per_year_usd_high"),
                    *("estimated_largest_batch_size", "estimated_safe_batch_size", "is_shared", "is_baseline"),
                )
            },
        ),
        ("Error", {"fields": ("error_code", "error_message", "exit_status", "cancel_requested")}),
        ("Name and note", {"fields": ("name", "note")}),
        ("Attempts", {"fields": ("attempts_table", "log")}),
        ("Probes", {"fields": ("probes_table",)}),
        ("Requested spec", {"fields": ("spec",)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        runs = Run.all_runs.with_places().order_by(*_NEWEST)
        return runs.defer("device__calibration", "requested_device__calibration", "result", "memory_curve")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Run], search_term: str
    ) -> tuple[QuerySet[Run], bool]:
        term = search_term.strip()
        if is_row_id(term):
            return queryset.filter(pk=int(term)), False
        if not term:
            return queryset, False
        people = Run._meta.get_field("requested_by").related_model._default_manager
        if (person := people.filter(username=term).values_list("pk", flat=True).first()) is not None:
            return queryset.filter(requested_by=person), False
        try:
            terms = checked_words(term)
        except ValidationError as error:
            self.message_user(request, f"The search was not done: {' '.join(error.messages)}", messages.ERROR)
            return queryset.none(), False
        return with_words(queryset, terms), False

    cancel, retry, pin, unpin = map(_action, ("cancel", "retry", "pin", "unpin"))
    soft_delete = _action("delete", "Delete: remove from every list, can be restored")
    restore = _action("restore", "Restore deleted ones")

    @admin.action(description="Export as CSV", permissions=["view"])
    def export_csv(self, request: HttpRequest, runs: QuerySet[Run]) -> StreamingHttpResponse:
        return _file(runs, "csv")

    @admin.action(description="Export as JSON", permissions=["view"])
    def export_json(self, request: HttpRequest, runs: QuerySet[Run]) -> StreamingHttpResponse:
        return _file(runs, "json")

    @admin.display(description="model")
    def trained(self, run: Run) -> str:
        return model_name(run.model)

    @admin.display(description="largest batch size")
    def largest(self, run: Run) -> str | int | None:
        return "does not fit" if run.largest_batch_size == 0 else run.largest_batch_size

    @admin.display(description="baseline")
    def baseline(self, run: Run) -> str:
        return "★" if run.is_baseline else ""

    @admin.display(description="where")
    def place(self, run: Run) -> str:
        device = run.device or run.requested_device
        if device is None:
            return run_place(run)
        return f"{short_device_name(device.name)} ({device.host} {device.device})"

    @admin.display(description="origin")
    def origin(self, run: Run) -> str | None:
        return Origin.of(run).mark

    @admin.display(description="page")
    def page(self, run: Run) -> SafeString | str:
        if run.deleted_at is not None:
            return "Deleted: restore the run to see its page."
        return format_html('<a href="{}">run {}</a>', run.get_absolute_url(), run.pk)

    @admin.display(description="log")
    def log(self, run: Run) -> SafeString:
        address = reverse("admin:analysis_runlog_changelist")
        return format_html('<a href="{}?run__id__exact={}">log lines of run {}</a>', address, run.pk, run.pk)

    @admin.display(description="attempts")
    def attempts_table(self, run: Run) -> SafeString:
        attempts = run.attempts.select_related("device__host").defer("environment", "device__calibration")
        return render_to_string("admin/run_attempts.html", {"attempts": attempts[:ATTEMPTS_SHOWN]})

    @admin.display(description="probes")
    def probes_table(self, run: Run) -> SafeString:
        probes = run.measurements.order_by("attempt", "sequence")[: PROBES_SHOWN + 1]
        context = {"probes": probes[:PROBES_SHOWN], "has_more": len(probes) > PROBES_SHOWN, "run": run}
        return render_to_string("admin/run_probes.html", context)


class PartOfRun(RunChildAdmin):
    search_fields = ("run_id",)
    search_help_text = "The number of a run."
    sortable_by = ()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        return (queryset.filter(run=int(term)) if is_row_id(term) else queryset.none()), False


@admin.register(Attempt)
class AttemptAdmin(PartOfRun):
    list_display = (
        *("id", "run_link", "number", "device", "owner"),
        *("started_at", "ended_at", "outcome", "cause", "counted"),
    )
    fields = (*list_display[1:], "message", "exit_status", "environment")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        return super().get_queryset(request).select_related("device__host").defer("device__calibration")


@admin.register(Measurement)
class MeasurementAdmin(PartOfRun):
    list_display = ("id", "run_link", "attempt", "sequence", "batch_size", "outcome", "purpose", "peak_allocated_bytes")
    exclude = ("run",)
    readonly_fields = ("run_link",)


@admin.register(RunLog)
class RunLogAdmin(PartOfRun):
    list_display = ("id", "run_link", "attempt", "sequence", "recorded_at", "level", "message")
    fields = list_display[1:]


@admin.register(Tag)
class TagAdmin(ReadOnly):
    """The tags of runs. A tag without runs is deleted automatically."""

    list_display = ("name",)
    search_fields = ("name",)


@admin.register(MatrixCell)
class MatrixCellAdmin(RunChildAdmin):
    list_display = (
        *("model", "card_name", "kind", "precision", "optimizer", "largest_batch_size"),
        *("run_link", "answered_at"),
    )
    list_filter = ("kind", "precision", "optimizer")
    search_fields = ("model", "card_name")
    fields = ("run_link", *list_display[:6], "settings", "safe_batch_size", "samples_per_second", "answered_at")


@admin.register(TrendAcknowledgement)
class TrendAcknowledgementAdmin(RunChildAdmin):
    list_display = ("run_link", "metric", "note", "acknowledged_by", "acknowledged_at")
    list_select_related = ("acknowledged_by",)
    fields = list_display


@admin.register(ShareLink)
class ShareLinkAdmin(RunChildAdmin):
    list_display = ("prefix", "run_link", "created_by", "created_at", "ends_at", "withdrawn_at")
    list_select_related = ("created_by",)
    search_fields = ("prefix", "created_by__username")
    sortable_by = ()
    fields = list_display
    actions = ("withdraw",)
    withdraw = on_ticked(
        "Withdraw: answer “not found” from now on",
        ended("withdrawn", lambda pk, by: share_link_withdraw(link_id=pk, by=by)),
    )


def _file(runs: QuerySet[Run], form: str) -> StreamingHttpResponse:
    ids = ids_of(runs)
    record("run.export", target=("run", ""), after={"form": form, "runs": sorted(ids)})
    return run_file(form, [Run.all_runs.filter(pk__in=ids).order_by(*_NEWEST)])
