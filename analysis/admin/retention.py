"""The retention rules: only the number of days can be changed."""

from __future__ import annotations

from django.contrib import admin

from analysis.admin.lists import Managed
from analysis.models import RetentionRule


@admin.register(RetentionRule)
class RetentionRuleAdmin(Managed[RetentionRule]):
    """The rules. `manage.py retain --dry-run` shows what a change would remove."""

    may = ("change",)
    list_display = ("__str__", "days", "applied_at")
    fields = ("what", "days", "applied_at")
    readonly_fields = ("what", "applied_at")
