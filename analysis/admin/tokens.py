"""Tokens, quotas and saved views. Of a token's secret only its first characters are shown."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from analysis.accounts.tokens import token_revoke
from analysis.admin.lists import Managed, ReadOnly
from analysis.models import ApiToken, Quota, SavedView
from analysis.permissions import signed_in_user


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

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    @admin.action(description="Revoke: refuse it from now on", permissions=["revoke"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        ids = list(tokens.values_list("pk", flat=True))
        count = sum(token_revoke(token_id=pk, by=signed_in_user(request)) for pk in ids)
        self.message_user(request, f"{count} revoked; {len(ids) - count} were revoked already.")


@admin.register(Quota)
class QuotaAdmin(Managed[Quota]):
    """How much of the queue a person, or each person of a group, may take."""

    list_display = ("of", "runs_waiting_max", "runs_per_day_max", "time_budget_max_seconds", "device_count")
    list_select_related = ("user", "group")
    search_fields = ("user__username", "group__name")
    autocomplete_fields = ("user",)
    filter_horizontal = ("devices",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Quota]:
        return super().get_queryset(request).prefetch_related("devices")

    @admin.display(description="person or group")
    def of(self, quota: Quota) -> str:
        return f"{quota.user}" if quota.user_id else f"each person of {quota.group}"

    @admin.display(description="devices")
    def device_count(self, quota: Quota) -> Any:
        return len(quota.devices.all()) or "all"

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_manytomany(db_field, request, **kwargs)
        if db_field.name == "devices" and field is not None and field.queryset is not None:
            field.queryset = field.queryset.select_related("host")
        return field


@admin.register(SavedView)
class SavedViewAdmin(ReadOnly[SavedView]):
    """People's saved views of the history. Managers can delete those of people who left."""

    list_display = ("name", "owner", "is_shared", "query", "created_at")
    list_filter = ("is_shared",)
    list_select_related = ("owner",)
    search_fields = ("name", "owner__username")

    def has_delete_permission(self, request: HttpRequest, obj: SavedView | None = None) -> bool:
        return Managed.has_delete_permission(self, request, obj)
