"""Data derived from runs, read-only: cells of the matrix, notes on trend steps, tags."""

from __future__ import annotations

from django.contrib import admin

from analysis.admin.lists import ReadOnly, RunChildAdmin
from analysis.models import MatrixCell, Tag, TrendAcknowledgement


@admin.register(Tag)
class TagAdmin(ReadOnly[Tag]):
    """The tags of runs. A tag without runs is deleted automatically."""

    list_display = ("name",)
    search_fields = ("name",)


@admin.register(MatrixCell)
class MatrixCellAdmin(RunChildAdmin[MatrixCell]):
    """The newest result per card, workload and settings; written when a run ends."""

    list_display = (
        *("model", "card_name", "kind", "precision", "optimizer", "largest_batch_size"),
        *("run_link", "answered_at"),
    )
    list_filter = ("kind", "precision", "optimizer")
    search_fields = ("model", "card_name")
    fields = ("run_link", *list_display[:6], "settings", "safe_batch_size", "samples_per_second", "answered_at")


@admin.register(TrendAcknowledgement)
class TrendAcknowledgementAdmin(RunChildAdmin[TrendAcknowledgement]):
    """People's notes on the steps of a trend."""

    list_display = ("run_link", "metric", "note", "acknowledged_by", "acknowledged_at")
    list_select_related = ("acknowledged_by",)
    fields = list_display
