"""An action on one run or many, of one's own or as a GPU manager; what was not done is counted, with the reason."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from analysis.models import Run


@dataclass(frozen=True, slots=True)
class BulkResult:
    done: int
    not_allowed: int = 0
    not_possible: int = 0
    reason: str = ""


def changeable_ids(run_ids: Collection[int], by: User) -> list[int]:
    return ids_of(Run.objects.changeable_by(by).filter(pk__in=run_ids))


def ids_of(rows: QuerySet[Any]) -> list[int]:
    return list(rows.values_list("pk", flat=True))


def run_targets(run_ids: Collection[int]) -> list[tuple[str, str]]:
    return [("run", str(pk)) for pk in run_ids]
