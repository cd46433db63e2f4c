"""Deleted runs: hidden from every list until they are restored or purged."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from analysis.audit.record import record_many
from analysis.models import TERMINAL_STATES, Run
from analysis.runs.bulk import BulkResult, changeable_ids, ids_of, run_targets
from analysis.runs.columns.matrix_store import cells_renew


def runs_delete(*, run_ids: Collection[int], by: User) -> BulkResult:
    """Hide these runs from every list; they can be restored. Runs that are not over have to be cancelled first."""
    mine = changeable_ids(run_ids, by)
    with transaction.atomic():
        over = ids_of(Run.objects.filter(pk__in=mine, state__in=TERMINAL_STATES, is_baseline=False))
        done = Run.objects.filter(pk__in=over).update(deleted_at=Now())
        record_many("run.delete", run_targets(over))
    cells_renew(run_ids=mine)
    return BulkResult(done, len(run_ids) - len(mine), len(mine) - done, "not over yet or a baseline")


def runs_restore(*, run_ids: Collection[int], by: User) -> BulkResult:
    mine = Run.all_runs.changeable_by(by).filter(pk__in=run_ids)
    count = mine.count()
    with transaction.atomic():
        gone = ids_of(mine.filter(deleted_at__isnull=False).select_for_update(of=("self",)))
        done = Run.all_runs.filter(pk__in=gone).update(deleted_at=None, restored_at=Now())
        record_many("run.restore", run_targets(gone))
    cells_renew(run_ids=run_ids)
    return BulkResult(done, len(run_ids) - count, count - done, "not deleted")
