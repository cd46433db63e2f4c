"""Rows that exist for the API alone: requests that may be sent again, and how much of each allowance is used."""

from __future__ import annotations

from django.conf import settings
from django.db import models

KEY_LENGTH, SCOPE_LENGTH, WHO_LENGTH = 255, 20, 64


class IdempotencyKey(models.Model):
    """A name that a client gave to a request which stores a run: sent again, it is answered with the same run."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="idempotency_keys", db_index=False
    )
    key = models.CharField(max_length=KEY_LENGTH)
    digest = models.CharField(max_length=64, help_text="Of the address and the body, SHA-256.")
    run = models.ForeignKey("analysis.Run", null=True, on_delete=models.CASCADE, related_name="idempotency_keys")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("owner", "key"), name="idempotency_key_once_per_owner"),)

    def __str__(self) -> str:
        return self.key


class Throttle(models.Model):
    """How much of an allowance somebody has used. In the database, so that all processes and hosts count alike."""

    scope = models.CharField(max_length=SCOPE_LENGTH)
    who = models.CharField(max_length=WHO_LENGTH)
    free_at_seconds = models.FloatField(help_text="When the whole allowance is free again, in seconds since 1970.")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("scope", "who"), name="throttle_once_per_scope"),)

    def __str__(self) -> str:
        return f"{self.scope} of {self.who}"
