"""Tokens, quotas and saved views. Of a token's secret only its first characters are shown."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from analysis.accounts.tokens import token_revoke
from analysis.admin.lists import Managed, ReadOnly
from analysis.models import ApiToken, Quota, SavedView


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly[ApiToken]):
    """Tokens, to find and revoke. Their owners create them on their own page."""

    list_display = (
        *("prefix", "name", "owner", "may_write", "created_at", "expires_at"),
        *("last_used_at", "last_used_address", "revoked_at"),
    )
    list_filter = ("may_write",)
    list_select_related = ("owner",)
    search_fields = ("prefix", "name", "owner__username")
    ordering = ("-created_at", "-id")
    sortable_by = ()
    fields = list_display
    actions = ("revoke",)

    @admin.action(description="Revoke: refuse it from now on", permissions=["view"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        self.end_each(request, tokens, lambda pk, by: token_revoke(token_id=pk, by=by), "revoked")


@admin.register(Quota)
class QuotaAdmin(Managed[Quota]):
    """How much of the queue a person, or each person of a group, may take."""

    list_display = ("of", "runs_waiting_max", "runs_per_day_max", "time_budget_max_seconds", "device_count")
    list_select_related = ("user", "group")
    search_fields = ("user__username", "group__name")
    autocomplete_fields = ("user",)
    filter_horizontal = ("devices",)
    choices_with = {"devices": "host"}
    fieldsets = (
        (
            None,
            {
                "fields": ("user", "group"),
                "description": "Choose a person or a group. A person's own quota counts alone; "
                "of several groups the highest value of each field does.",
            },
        ),
        ("At most", {"fields": ("runs_waiting_max", "runs_per_day_max", "time_budget_max_seconds", "devices")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Quota]:
        return super().get_queryset(request).prefetch_related("devices")

    @admin.display(description="person or group")
    def of(self, quota: Quota) -> str:
        return f"{quota.user}" if quota.user_id else f"each person of {quota.group}"

    @admin.display(description="devices")
    def device_count(self, quota: Quota) -> Any:
        return len(quota.devices.all()) or "all"


@admin.register(SavedView)
class SavedViewAdmin(ReadOnly[SavedView]):
    """People's saved views of the history. Managers can delete those of people who left."""

    may = ("delete",)
    list_display = ("name", "owner", "is_shared", "query", "created_at")
    list_filter = ("is_shared",)
    list_select_related = ("owner",)
    search_fields = ("name", "owner__username")
