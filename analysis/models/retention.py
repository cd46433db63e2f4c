"""The rules of retention: one row for each thing that piles up."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models

DAYS_MAX = 36_500
"""A hundred years: further back there is no date to count from."""

_AUDIT_DAYS_MIN = 365
"""A manager must not be able to erase what they have just done."""


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
    days = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(DAYS_MAX)],
        help_text="Empty: for ever. Entries of the audit log: at least 365.",
    )

    applied_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="When it was last seen to.")

    reached_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="How far the logs are thinned.")

    class Meta:
        ordering = ("what",)

    def __str__(self) -> str:
        return self.get_what_display()

    def clean(self) -> None:
        if self.days is not None and self.days < self.days_min:
            raise ValidationError({"days": f"At least {self.days_min}, or empty: for ever."})

    @property
    def days_min(self) -> int:
        return _AUDIT_DAYS_MIN if self.what == self.What.AUDIT_ENTRIES else 1

    @property
    def days_kept(self) -> int | None:
        """What is applied, whatever was written into the row past the form."""
        return None if self.days is None else min(max(self.days, self.days_min), DAYS_MAX)
