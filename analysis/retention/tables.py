"""The rules of retention: one row for each thing that piles up."""

from __future__ import annotations

from django.db import models


class RetentionRule(models.Model):
    """How many days something is kept. Empty: for ever."""

    class What(models.TextChoices):
        """What piles up here. Baselines are runs that every rule about runs passes over."""

        DELETED_RUNS = "deleted_runs", "Deleted runs, with all that was measured in them"
        LOG_LINES = "log_lines", "Log lines of runs that are over: beginning, end, warnings and errors stay"
        OLD_RUNS = "old_runs", "Runs that are over: deleted, and can be restored as long as deleted runs are kept"
        AUDIT_ENTRIES = "audit_entries", "Entries of the audit log"
        IDEMPOTENCY_KEYS = "idempotency_keys", "Keys of requests that the API would answer again the same way"

    what = models.CharField(max_length=20, choices=What.choices, unique=True)
    days = models.PositiveIntegerField(null=True, blank=True, help_text="Empty: for ever.")

    applied_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="When it was last seen to.")

    reached_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="How far the logs are thinned.")

    class Meta:
        ordering = ("what",)

    def __str__(self) -> str:
        return self.get_what_display()
