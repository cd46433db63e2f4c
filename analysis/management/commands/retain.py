"""`python manage.py retain`: applies the retention rules now. A worker without a device does so every day."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from analysis.database import refuse_unmigrated
from analysis.models import RetentionRule
from analysis.runs.keeping.retention import Applied, retain, would_retain

_ROWS = {
    RetentionRule.What.DELETED_RUNS: "runs purged",
    RetentionRule.What.OLD_RUNS: "runs deleted",
    RetentionRule.What.LOG_LINES: "log lines removed",
    RetentionRule.What.AUDIT_ENTRIES: "entries removed",
    RetentionRule.What.IDEMPOTENCY_KEYS: "keys removed",
    RetentionRule.What.NEWS: "news removed",
    RetentionRule.What.SHARE_LINKS: "share links removed",
}


class Command(BaseCommand):
    help = "Delete the data that the retention rules say is too old. Baselines are never deleted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only print how much would be deleted")

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_unmigrated()
        for applied in would_retain() if options["dry_run"] else retain():
            self.stdout.write(f"{applied.rule}: {_as_text(applied, options['dry_run'])}")


def _as_text(applied: Applied, is_dry: bool) -> str:
    what = RetentionRule.What(applied.rule.what)
    if applied.count is None:
        return "never deleted"
    days = f"older than {applied.rule.days_applied} days"
    if not is_dry:
        return f"{applied.count} {_ROWS[what]} ({days})"
    if what == RetentionRule.What.LOG_LINES:
        return f"the logs of {applied.count} runs would be trimmed ({days})"
    return f"would be {applied.count} {_ROWS[what]} ({days})"
