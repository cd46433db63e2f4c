"""The audit log: actor, action, time, target, and values before and after. For GPU managers; read-only."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request

from analysis.api.permissions import MayManage
from analysis.api.v1.paging import Keyset
from analysis.api.v1.serializer_bases import Query
from analysis.api.v1.strict_view import StrictView
from analysis.http.problem_details import Problem
from analysis.models import AuditEntry


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """One entry. The actor is empty where nobody had signed in."""

    actor = serializers.CharField(source="actor_name")
    before = serializers.JSONField()
    after = serializers.JSONField()

    class Meta:
        model = AuditEntry
        fields = (
            *("id", "recorded_at", "actor", "action", "target_kind", "target_id", "target_text"),
            *("before", "after", "request_id", "remote_address"),
        )


class AuditQuery(Query):
    """Filters of the audit log; entries match all given filters."""

    actor = serializers.CharField(required=False, max_length=150, help_text="Name of a person.")
    action = serializers.CharField(required=False, max_length=40, help_text="Name of an action, such as token.create.")
    target_kind = serializers.CharField(
        required=False, max_length=40, help_text="Kind of target, such as run or device."
    )
    target_id = serializers.CharField(
        required=False, max_length=64, help_text="Id of the target. Requires target_kind."
    )
    request_id = serializers.CharField(required=False, max_length=64, help_text="X-Request-ID of a response.")
    since = serializers.DateTimeField(required=False, help_text="Entries from this moment on.")
    until = serializers.DateTimeField(required=False, help_text="Entries before this moment.")


def _kind_missing() -> Problem:
    """Refuse a target's id without its kind, which has no index."""
    detail = "target_id requires target_kind"
    errors = [{"parameter": name, "detail": detail, "code": "together"} for name in ("target_id", "target_kind")]
    return Problem(400, detail=f"{detail}.", errors=errors)


_LOOKUPS: dict[str, str] = {"actor": "actor__username", "since": "recorded_at__gte", "until": "recorded_at__lt"}


@extend_schema_view(get=extend_schema(tags=["audit"], operation_id="audit_list", parameters=[AuditQuery]))
class AuditList(StrictView, ListAPIView[AuditEntry]):
    """Entries of the audit log, newest first."""

    permission_classes = (MayManage,)
    serializer_class = AuditEntrySerializer
    pagination_class = Keyset
    ordering = ("-id",)
    queryset = AuditEntry.objects.none()
    query_parameters = AuditQuery.names()
    request: Request

    def get_queryset(self) -> QuerySet[AuditEntry]:
        parameters: dict[str, Any] = AuditQuery.of(self.request)
        if "target_id" in parameters and "target_kind" not in parameters:
            raise _kind_missing()
        return AuditEntry.objects.filter(**{_LOOKUPS.get(name, name): value for name, value in parameters.items()})
