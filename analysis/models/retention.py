"""The retention rules: one row for each kind of data that accumulates."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models

DAYS_MAX = 36_500
"""A hundred years: further back there is no date to count from."""

_AUDIT_DAYS_MIN = 365
"""A manager must not be able to erase what they have just done."""


class RetentionRule(models.Model):
    """After how many days one kind of data is deleted. Empty: never."""

    class What(models.TextChoices):
        """The kinds of data that accumulate. Every rule about runs skips baselines."""

        DELETED_RUNS = "deleted_runs", "Deleted runs, with their measurements: removed permanently"
        LOG_LINES = "log_lines", "Log lines of runs that are over: removed, except beginning, end, warnings and errors"
        OLD_RUNS = "old_runs", "Runs that are over: deleted, but can be restored until they are removed permanently"
        AUDIT_ENTRIES = "audit_entries", "Entries of the audit log"
        IDEMPOTENCY_KEYS = "idempotency_keys", "Idempotency keys of API requests"
        NEWS = "news", "News of runs and devices, with the log of their deliveries"
        SHARE_LINKS = "share_links", "Links that show a run without a login: no link is valid for longer"

    what = models.CharField(max_length=20, choices=What.choices, unique=True)
    days = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(DAYS_MAX)],
        help_text="Days after which this is done. Empty: never. Entries of the audit log: at least 365.",
    )

    applied_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When the rule was last applied."
    )

    reached_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Logs of runs that ended before this are trimmed."
    )

    class Meta:
        ordering = ("what",)

    def __str__(self) -> str:
        return self.get_what_display()

    def clean(self) -> None:
        if self.days is not None and self.days < self.days_min:
            raise ValidationError({"days": f"Must be at least {self.days_min}, or empty for never."})

    @property
    def days_min(self) -> int:
        return _AUDIT_DAYS_MIN if self.what == self.What.AUDIT_ENTRIES else 1

    @property
    def days_applied(self) -> int | None:
        return None if self.days is None else min(max(self.days, self.days_min), DAYS_MAX)


FIRST_DAYS = {
    RetentionRule.What.DELETED_RUNS: 30,
    RetentionRule.What.LOG_LINES: 90,
    RetentionRule.What.OLD_RUNS: None,
    RetentionRule.What.AUDIT_ENTRIES: None,
    RetentionRule.What.IDEMPOTENCY_KEYS: 1,
    RetentionRule.What.NEWS: 30,
    RetentionRule.What.SHARE_LINKS: 90,
}
"""The days of each rule until a manager changes them."""
