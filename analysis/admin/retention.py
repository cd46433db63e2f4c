"""The rules of retention: how many days, and nothing else, is for people to decide."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from analysis.admin.lists import Managed
from analysis.models import RetentionRule


@admin.register(RetentionRule)
class RetentionRuleAdmin(Managed[RetentionRule]):
    """`manage.py retain --dry-run` says what a change would throw away."""

    list_display = ("__str__", "days", "applied_at")
    fields = ("what", "days", "applied_at")
    readonly_fields = ("what", "applied_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
