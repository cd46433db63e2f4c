"""The audit log: actor, action, time, target, and values before and after. For GPU managers; read-only."""

from __future__ import annotations

from django import forms
from rest_framework import serializers

from analysis.api.permissions import MayManage
from analysis.api.v1.base.views import PageForm, Pages
from analysis.http.query_string import MomentField
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


class AuditForm(PageForm):
    actor = forms.CharField(required=False, max_length=150, help_text="Name of a person.")
    action = forms.CharField(required=False, max_length=40, help_text="Name of an action, such as token.create.")
    target_kind = forms.CharField(required=False, max_length=40, help_text="Kind of target, such as run or device.")
    target_id = forms.CharField(required=False, max_length=64, help_text="Id of the target. Requires target_kind.")
    request_id = forms.CharField(required=False, max_length=64, help_text="X-Request-ID of a response.")
    since = MomentField(required=False, help_text="Entries from this moment on.")
    until = MomentField(required=False, help_text="Entries before this moment.")

    def clean(self) -> None:
        """Refuse a target's id without its kind, which has no index."""
        if self.cleaned_data.get("target_id") and not self.cleaned_data.get("target_kind"):
            for name in ("target_id", "target_kind"):
                self.add_error(name, forms.ValidationError("target_id requires target_kind", "together"))


class AuditLog(Pages[AuditEntry]):
    """Entries of the audit log, newest first."""

    permission_classes = (MayManage,)
    serializer_class = AuditEntrySerializer
    queryset = AuditEntry.objects.all()
    query_form = AuditForm
    lookups = {
        **{name: name for name in ("action", "target_kind", "target_id", "request_id")},
        **{"actor": "actor__username", "since": "recorded_at__gte", "until": "recorded_at__lt"},
    }
