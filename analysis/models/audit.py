"""Entries of the audit log: written once, never changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

ACTION_LENGTH, KIND_LENGTH, TARGET_ID_LENGTH, TEXT_LENGTH = 40, 40, 64, 200


class AuditEntryImmutableError(TypeError):
    """Code tried to change or delete an entry of the audit log."""


class AuditQuerySet(models.QuerySet["AuditEntry"]):
    """Reads and adds entries. Only retention deletes them, when they are old enough."""

    def update(self, **columns: Any) -> int:
        raise AuditEntryImmutableError("entries of the audit log cannot be changed")

    def delete(self) -> tuple[int, dict[str, int]]:
        raise AuditEntryImmutableError("only retention deletes entries of the audit log")

    def purge_before(self, before: datetime, *, limit: int) -> int:
        oldest = list(self.filter(recorded_at__lt=before).order_by("pk").values_list("pk", flat=True)[:limit])
        return models.QuerySet(AuditEntry).filter(pk__in=oldest).delete()[0]


class AuditEntry(models.Model):
    """One action of a person or of the portal on a target. The names stay when the rows themselves are deleted.

    `actor` is empty where nobody had signed in, or where the portal acted; then `actor_name` names the part of it.
    """

    recorded_at = models.DateTimeField(default=timezone.now)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    actor_name = models.CharField(max_length=150, blank=True, default="")
    action = models.CharField(max_length=ACTION_LENGTH)
    target_kind = models.CharField(max_length=KIND_LENGTH)
    target_id = models.CharField(max_length=TARGET_ID_LENGTH, blank=True, default="")
    target_text = models.CharField(max_length=TEXT_LENGTH, blank=True, default="")
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    request_id = models.CharField(max_length=64, blank=True, default="")
    remote_address = models.GenericIPAddressField(null=True, blank=True)

    objects = AuditQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        verbose_name = "audit entry"
        verbose_name_plural = "audit log"
        indexes = (
            models.Index(fields=("actor", "-id"), name="audit_by_actor"),
            models.Index(fields=("action", "-id"), name="audit_by_action"),
            models.Index(fields=("target_kind", "-id"), name="audit_by_kind"),
            models.Index(fields=("target_kind", "target_id", "-id"), name="audit_by_target"),
            models.Index(fields=("request_id",), name="audit_by_request"),
            models.Index(fields=("recorded_at",), name="audit_by_time"),
        )

    def __str__(self) -> str:
        return f"{self.actor_name or 'nobody'}: {self.action} {self.target_text or self.target_id}".rstrip()

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise AuditEntryImmutableError("entries of the audit log cannot be changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise AuditEntryImmutableError("only retention deletes entries of the audit log")
