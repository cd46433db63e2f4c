"""The audit log, read-only: no role may add, change or delete an entry here; and the rules of retention."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from analysis.admin.lists import ConditionFilter, Managed, ReadOnly, choice_of
from analysis.audit.actions import ACTIONS, TARGET_TYPES
from analysis.models import AuditEntry, RetentionRule

_TARGET = re.compile(rf"({'|'.join(TARGET_TYPES)})[ :/#]+(\w+)")
_ADMIN_OF = {"user": "auth_user", "group": "auth_group"}
_SHOWN_LENGTH = 160


class ByDays(ConditionFilter):
    title, parameter_name = "time", "days"

    def conditions(self) -> dict[str, tuple[str, Q]]:
        labels = {1: "last 24 hours", 7: "last 7 days", 30: "last 30 days"}
        since = {days: Q(recorded_at__gte=timezone.now() - timedelta(days=days)) for days in labels}
        return {str(days): (label, since[days]) for days, label in labels.items()}


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    list_display = ("moment", "actor_text", "action", "target_link", "change", "request_id")
    list_filter = (
        ByDays,
        choice_of("kind", [(kind, kind) for kind in TARGET_TYPES], title="target", column="target_kind"),
        choice_of("action", [(action, action) for action in ACTIONS]),
    )
    sortable_by = ()
    ordering = ("-id",)
    search_fields = ("request_id",)
    search_help_text = "A request id, a person’s name, or a kind and a number: run 17."
    fields = (
        *("moment", "actor_text", "action", "target_link"),
        *("before_text", "after_text", "request_id", "remote_address"),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Search by request id, actor or target, each with its own index; any other text finds nothing."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if found := _TARGET.fullmatch(term.lower()):
            return queryset.filter(target_kind=found[1], target_id=found[2]), False
        person = get_user_model().objects.filter(username=term).values_list("pk", flat=True).first()
        return queryset.filter(Q(request_id=term) if person is None else Q(actor=person)), False

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        return AuditEntry.objects.order_by("-id")

    @admin.display(description="when (UTC)")
    def moment(self, entry: AuditEntry) -> str:
        return f"{entry.recorded_at:%Y-%m-%d %H:%M:%S}"

    @admin.display(description="actor")
    def actor_text(self, entry: AuditEntry) -> str:
        return entry.actor_name or "not signed in"

    @admin.display(description="target")
    def target_link(self, entry: AuditEntry) -> SafeString | str:
        text = entry.target_text or f"{entry.target_kind} {entry.target_id}".strip()
        try:
            page = _ADMIN_OF.get(entry.target_kind, f"analysis_{entry.target_kind}")
            return format_html('<a href="{}">{}</a>', reverse(f"admin:{page}_change", args=[entry.target_id]), text)
        except NoReverseMatch:
            return text

    @admin.display(description="change")
    def change(self, entry: AuditEntry) -> str:
        sides = [
            ", ".join(f"{name}: {_value(value)}" for name, value in (side or {}).items())
            for side in (entry.before, entry.after)
        ]
        text = " → ".join(side for side in sides if side) if all(sides) else "".join(sides)
        return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]} …"

    @admin.display(description="before")
    def before_text(self, entry: AuditEntry) -> SafeString:
        return _as_text(entry.before)

    @admin.display(description="after")
    def after_text(self, entry: AuditEntry) -> SafeString:
        return _as_text(entry.after)


@admin.register(RetentionRule)
class RetentionRuleAdmin(Managed):
    """The rules. `manage.py retain --dry-run` shows what a change would remove."""

    may = ("change",)
    list_display = ("__str__", "days", "applied_at")
    fields = ("what", "days", "applied_at")
    readonly_fields = ("what", "applied_at")


def _value(value: Any) -> str:
    return "–" if value in (None, "", []) else ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _as_text(value: Any) -> SafeString:
    text = "–" if value is None else json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    return format_html("<pre>{}</pre>", text)
