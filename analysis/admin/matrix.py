"""What is derived from runs: cells of the matrix, steps that somebody acknowledged, tags. To read."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from analysis.admin.lists import ReadOnly, RunChildAdmin
from analysis.models import MatrixCell, Tag, TrendAcknowledgement


@admin.register(Tag)
class TagAdmin(ReadOnly[Tag]):
    """The words people put on runs. One that no run has any more goes by itself."""

    list_display = ("name",)
    search_fields = ("name",)


@admin.register(MatrixCell)
class MatrixCellAdmin(RunChildAdmin[MatrixCell]):
    """The newest answer per card, workload and settings; written when a run ends."""

    list_display = (
        "model",
        "card_name",
        "kind",
        "precision",
        "optimizer",
        "largest_batch_size",
        "of_run",
        "answered_at",
    )
    list_filter = ("kind", "precision", "optimizer")
    search_fields = ("model", "card_name")
    fields = ("of_run", *list_display[:6], "settings", "safe_batch_size", "samples_per_second", "answered_at")
    readonly_fields = ("of_run",)


@admin.register(TrendAcknowledgement)
class TrendAcknowledgementAdmin(RunChildAdmin[TrendAcknowledgement]):
    """What people said of the steps in a trend."""

    list_display = ("of_run", "metric", "note", "acknowledged_by", "acknowledged_at")
    fields = list_display
    readonly_fields = ("of_run",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[TrendAcknowledgement]:
        return super().get_queryset(request).select_related("acknowledged_by")
