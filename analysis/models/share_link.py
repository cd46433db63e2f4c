"""Links that show one run to people without an account."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone


class ShareLinkQuerySet(models.QuerySet["ShareLink"]):
    def live(self) -> ShareLinkQuerySet:
        """Keep links neither withdrawn nor ended by the database's clock, of runs that are not deleted."""
        return self.filter(Q(ends_at=None) | Q(ends_at__gt=Now()), withdrawn_at=None, run__deleted_at=None)


class ShareLink(models.Model):
    """A link that shows a result without a login until it ends or is withdrawn; only its secret's digest is stored."""

    run = models.ForeignKey("analysis.Run", on_delete=models.CASCADE, related_name="share_links")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="share_links"
    )
    prefix = models.CharField(max_length=12, help_text="First characters of the secret, to distinguish links.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    ends_at = models.DateTimeField(null=True, blank=True, help_text="Empty: valid until it is withdrawn.")
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = ShareLinkQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"{self.prefix}… of run {self.run_id}"

    @property
    def has_ended(self) -> bool:
        return self.ends_at is not None and self.ends_at <= timezone.now()
