"""An action on one run or many, of one's own or as a GPU manager; what was not done is counted, with the reason."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.auth.models import User

from analysis.models import Run
from analysis.models.querysets import RunQuerySet


@dataclass(frozen=True, slots=True)
class BulkResult:
    done: int
    not_allowed: int = 0
    not_possible: int = 0
    reason: str = ""


def changeable_ids(run_ids: Collection[int], by: User) -> list[int]:
    return ids_of(Run.objects.changeable_by(by).filter(pk__in=run_ids))


def ids_of(runs: RunQuerySet) -> list[int]:
    return list(runs.values_list("pk", flat=True))


def run_targets(run_ids: Collection[int]) -> list[tuple[str, str]]:
    return [("run", str(pk)) for pk in run_ids]
