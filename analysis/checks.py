"""System checks: settings that would repeat runs or lose writes are refused at start, with the remedy.

analysis.E001   the queue's time-out does not stand above the longest run
analysis.E002   the queue repeats messages before three time-outs have passed
analysis.E003   the queue is not in the runs' database: a run and its wake-up could not commit together
analysis.E004   a queue's name from the environment would be ignored (ALT_CLUSTERS is missing)
analysis.E005   more than one queue worker per device
analysis.E006   SQLite whose transactions do not take the write lock at their start
analysis.W001   served to this machine alone, yet in production
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register


@register
def check_queue(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    queue: dict[str, Any] = settings.Q_CLUSTER
    timeout, retry = queue.get("timeout") or 0, queue.get("retry") or 0
    longest = settings.RUN_TIME_BUDGET_MAX_SECONDS + settings.RUN_GRACE_SECONDS
    rules = (
        (timeout > longest, "E001", f"Q_CLUSTER['timeout'] must be above the longest run ({longest:.0f} s)."),
        (retry > 3 * timeout, "E002", f"Q_CLUSTER['retry'] must be above three time-outs ({3 * timeout} s)."),
        (queue.get("orm") == "default", "E003", "Q_CLUSTER['orm'] must be 'default'."),
        ("ALT_CLUSTERS" in queue, "E004", "Q_CLUSTER needs the key ALT_CLUSTERS; {} will do."),
        (queue.get("workers") == 1, "E005", "Q_CLUSTER['workers'] must be 1: one run at a time on a device."),
    )
    return [Error(message, id=f"analysis.{number}") for holds, number, message in rules if not holds]


@register
def check_database(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    database = settings.DATABASES["default"]
    is_sqlite = database["ENGINE"] == "django.db.backends.sqlite3"
    if not is_sqlite or database.get("OPTIONS", {}).get("transaction_mode") == "IMMEDIATE":
        return []
    hint = "Set OPTIONS['transaction_mode'] = 'IMMEDIATE' and a timeout of 20 s."
    return [Error("SQLite would answer 'database is locked' under load.", hint=hint, id="analysis.E006")]


@register
def check_exposure(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    if not (settings.SERVES_THIS_MACHINE_ONLY and settings.PRODUCTION):
        return []
    hint = "Unset MEMORYMARK_LOCAL: behind a proxy every request would look like one from this machine."
    return [Warning("POST /analyze is open to this machine without a login.", hint=hint, id="analysis.W001")]
