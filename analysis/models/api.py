"""Tables of the API: idempotency keys of requests, and the use of rate limits."""

from __future__ import annotations

from django.conf import settings
from django.db import models

KEY_LENGTH, SCOPE_LENGTH, WHO_LENGTH = 255, 20, 64


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
