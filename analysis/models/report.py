"""Runs that a sender on another machine reported, and whose reports are trusted."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from analysis.models.accounts import ApiToken
from analysis.models.run import Run

RUN_KEY_LENGTH, SHA256_LENGTH, ENGINE_VERSION_LENGTH = 32, 64, 40


class Report(models.Model):
    """How a run came here: under which key, with which token, and how much of it has arrived.

    `run_key` is drawn by the sender when its run starts, and known to everybody who reads the result. So a key, and a
    document, is one run of each person who sends it: nobody can take it from another. The host is in
    `Run.reported_from`.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="report")
    reported_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,  # the constraints have it first
        help_text="Empty: the account was deleted.",
    )
    run_key = models.CharField(max_length=RUN_KEY_LENGTH)
    token = models.ForeignKey(
        ApiToken,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="reports",
        help_text="Empty: reported with a name and a password.",
    )
    engine_version = models.CharField(max_length=ENGINE_VERSION_LENGTH, blank=True, default="")
    started_at = models.DateTimeField(
        null=True, blank=True, help_text="By the clock of the sender, which may be wrong: nothing is ordered by it."
    )
    events_received = models.PositiveIntegerField(default=0)
    probe_bytes = models.PositiveIntegerField(default=0, help_text="Bytes of the probes among the events.")
    document_sha256 = models.CharField(  # noqa: DJ001  (null: there is none yet; each one there is is unique)
        max_length=SHA256_LENGTH, null=True, blank=True, help_text="SHA-256 of the result's bytes as received."
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("reported_by", "run_key"), name="report_once_per_key"),
            models.UniqueConstraint(fields=("reported_by", "document_sha256"), name="report_once_per_document"),
        )

    def __str__(self) -> str:
        return f"report of run {self.run_id}"


class TrustQuerySet(models.QuerySet["Trust"]):
    def given(self) -> TrustQuerySet:
        return self.filter(revoked_at=None)


class Trust(models.Model):
    """A GPU manager's decision that runs reported with a token, or from a host, count like those measured here.

    A revoked one stays: the row says who decided what, and when. `Run.is_trusted` is derived from these rows. So the
    account of a token that was ever trusted is closed and not deleted: its runs would count for ever.
    """

    token = models.ForeignKey(ApiToken, null=True, blank=True, on_delete=models.PROTECT, related_name="trust")
    host = models.CharField(
        max_length=200, blank=True, default="", help_text="As the sender names it: anybody who may report can."
    )
    trusted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    trusted_at = models.DateTimeField(auto_now_add=True)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = TrustQuerySet.as_manager()

    class Meta:
        ordering = ("-trusted_at", "-id")
        verbose_name_plural = "trust"
        constraints = (
            models.CheckConstraint(
                condition=Q(token__isnull=True) & ~Q(host="") | Q(token__isnull=False, host=""),
                name="trust_in_a_token_or_a_host",
                violation_error_message="Name a token or a host, not both.",
            ),
            models.UniqueConstraint(
                fields=("token",),
                condition=Q(revoked_at=None, token__isnull=False),
                name="trust_once_per_token",
                violation_error_message="This token is trusted already.",
            ),
            models.UniqueConstraint(
                fields=("host",),
                condition=Q(revoked_at=None) & ~Q(host=""),
                name="trust_once_per_host",
                violation_error_message="This host is trusted already.",
            ),
        )

    def __str__(self) -> str:
        return f"trust in {f'host {self.host}' if self.host else f'token {self.token}'}"
