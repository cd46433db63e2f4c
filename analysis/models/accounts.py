"""API tokens, idempotency keys and rate limits of programs, and quotas."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

TOKEN_NAME_LENGTH = 100
KEY_LENGTH, SCOPE_LENGTH, WHO_LENGTH = 255, 20, 64
READS, WRITES, REPORTS = "mm_r_", "mm_w_", "mm_p_"
"""What the secret of each kind of token begins with. The prefix is stored, so it also says what a token is for."""


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def live(self) -> ApiTokenQuerySet:
        """Keep tokens that are neither revoked nor expired by the database's clock, of people with an open account."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), revoked_at=None, owner__is_active=True)


class ApiToken(models.Model):
    """A program's credential instead of a name and a password. It never grants more rights than its owner has.

    The secret is shown once and never stored: the row has its digest. It has 256 random bits, which cannot be
    guessed, so a single fast SHA-256 is right; a slow hash protects passwords, which people choose.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=TOKEN_NAME_LENGTH, help_text="Purpose of the token.")
    prefix = models.CharField(max_length=12, help_text="First characters of the secret, to distinguish tokens.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    may_write = models.BooleanField(default=False, help_text="Whether the token may also change data.")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Empty: valid until it is revoked.")
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="Last use, to the minute.")
    last_used_address = models.GenericIPAddressField(
        null=True, blank=True, help_text="Client address of the last use, as far as it can be trusted."
    )
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"

    @property
    def only_reports(self) -> bool:
        """Whether it can only report runs: then it reads and changes nothing else."""
        return self.prefix.startswith(REPORTS)

    @property
    def has_ended(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()


class Quota(models.Model):
    """How much of the queue one person, or each person of a group, may take. An empty field sets no limit.

    A person's own quota replaces those of their groups; of several groups, each field's highest value counts.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="quota"
    )
    group = models.OneToOneField("auth.Group", null=True, blank=True, on_delete=models.CASCADE, related_name="quota")
    runs_waiting_max = models.PositiveIntegerField(
        "runs waiting", null=True, blank=True, help_text="Most runs in the queue at the same time, estimates included."
    )
    runs_per_day_max = models.PositiveIntegerField(
        "measurements in 24 hours",
        null=True,
        blank=True,
        help_text="Most measurements requested in any 24 hours; estimates do not count.",
    )
    time_budget_max_seconds = models.FloatField(
        "longest time budget, seconds", null=True, blank=True, validators=[MinValueValidator(1)]
    )
    devices = models.ManyToManyField(
        "analysis.Device",
        blank=True,
        related_name="+",
        help_text="Devices that may be used. Empty: every device that is open to the person.",
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


class IdempotencyKey(models.Model):
    """A client's key of a request that creates a run: a repeated request is answered with the same run."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="idempotency_keys", db_index=False
    )
    key = models.CharField(max_length=KEY_LENGTH)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the address and the body.")
    run = models.ForeignKey("analysis.Run", null=True, on_delete=models.CASCADE, related_name="idempotency_keys")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("owner", "key"), name="idempotency_key_once_per_owner"),)

    def __str__(self) -> str:
        return self.key


class Throttle(models.Model):
    """How much of a rate limit a client has used. Stored in the database, so that all processes and hosts share it."""

    scope = models.CharField(max_length=SCOPE_LENGTH)
    who = models.CharField(max_length=WHO_LENGTH)
    free_at_seconds = models.FloatField(help_text="When the full rate limit is available again, in seconds since 1970.")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("scope", "who"), name="throttle_once_per_scope"),)

    def __str__(self) -> str:
        return f"{self.scope} of {self.who}"
