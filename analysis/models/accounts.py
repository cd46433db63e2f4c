"""Rows of tokens and quotas."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

TOKEN_NAME_LENGTH = 100


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """The words in which tokens are read."""

    def live(self) -> ApiTokenQuerySet:
        """Neither revoked nor past their end, of people whose account is open, by the database's clock."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), revoked_at=None, owner__is_active=True)


class ApiToken(models.Model):
    """What a program shows instead of a name and a password. It never gives more than its owner may.

    The secret is shown once and kept nowhere: here is its digest. It has 256 random bits, which nobody can guess
    or try out, so a single fast SHA-256 is right; a slow hash protects passwords, which people choose.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=TOKEN_NAME_LENGTH, help_text="What it is for.")
    prefix = models.CharField(max_length=12, help_text="How the secret begins: to tell tokens apart.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    may_write = models.BooleanField(default=False, help_text="Else it only reads.")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Empty: until it is revoked.")
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="To the minute.")
    last_used_address = models.GenericIPAddressField(
        null=True, blank=True, help_text="Where that use came from, as far as it can be believed."
    )
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"

    @property
    def has_ended(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()


class Quota(models.Model):
    """How much of the queue one person, or each person of a group, may take. An empty field sets no limit.

    A person's own row stands in for those of their groups; of these, each field's most generous value counts.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="quota"
    )
    group = models.OneToOneField("auth.Group", null=True, blank=True, on_delete=models.CASCADE, related_name="quota")
    runs_waiting_max = models.PositiveIntegerField(
        "runs waiting", null=True, blank=True, help_text="In the queue at once; estimates count."
    )
    runs_per_day_max = models.PositiveIntegerField(
        "measurements in 24 hours",
        null=True,
        blank=True,
        help_text="Asked for in any 24 hours; estimates do not count.",
    )
    time_budget_max_seconds = models.FloatField(
        "longest time budget, seconds", null=True, blank=True, validators=[MinValueValidator(1)]
    )
    devices = models.ManyToManyField(
        "analysis.Device",
        blank=True,
        related_name="+",
        help_text="Only these; empty: every device that is open to them.",
    )

    class Meta:
        ordering = ("group__name", "user__username")
        constraints = (
            models.CheckConstraint(
                condition=Q(user__isnull=True, group__isnull=False) | Q(user__isnull=False, group__isnull=True),
                name="quota_of_a_user_or_of_a_group",
                violation_error_message="Name a person or a group, not both.",
            ),
        )

    def __str__(self) -> str:
        return f"quota of {self.user or self.group}"
