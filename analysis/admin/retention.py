"""The retention rules: only the number of days can be changed."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from analysis.admin.lists import Managed
from analysis.models import RetentionRule


@admin.register(RetentionRule)
class RetentionRuleAdmin(Managed[RetentionRule]):
    """The rules. `manage.py retain --dry-run` shows what a change would remove."""

    list_display = ("__str__", "days", "applied_at")
    fields = ("what", "days", "applied_at")
    readonly_fields = ("what", "applied_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
