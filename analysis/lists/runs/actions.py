"""What people do to many runs at once, from the history and from the admin panel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from analysis.runs import services
from analysis.runs.services import BulkResult


@dataclass(frozen=True, slots=True)
class Action:
    label: str
    done: str
    do: Callable[..., BulkResult]
    takes_tag: bool = False
    is_for_deleted: bool = False

    def describe(self, answer: BulkResult) -> str:
        """Write "3 cancelled; 1 not: over already; 2 not: another person's or deleted."."""
        parts = [f"{answer.done} {self.done}"]
        if answer.not_possible:
            parts.append(f"{answer.not_possible} not: {answer.reason}")
        if answer.not_allowed:
            parts.append(f"{answer.not_allowed} not: another person’s or deleted")
        return f"{'; '.join(parts)}."


ACTIONS = {
    "cancel": Action("Cancel", "cancelled", services.runs_cancel_by),
    "retry": Action("Run again", "queued again", services.runs_retry),
    "pin": Action("Pin as baseline", "pinned", partial(services.runs_set_baseline, is_baseline=True)),
    "unpin": Action("Unpin", "unpinned", partial(services.runs_set_baseline, is_baseline=False)),
    "delete": Action("Delete", "deleted", services.runs_delete),
    "restore": Action("Restore", "restored", services.runs_restore, is_for_deleted=True),
    "tag": Action("Add tag", "tagged", services.runs_tag, takes_tag=True),
    "untag": Action("Remove tag", "untagged", services.runs_untag, takes_tag=True),
}
