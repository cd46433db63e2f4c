"""Runs are deleted, which hides them from every list, and restored by people; and what retention does to runs.

It deletes old runs, purges deleted ones and trims logs, a bounded number at once; all three skip baselines. Devices
that only purged runs named go, too. Each call is one short transaction, so that others can write between two. Runs are
locked before their rows are removed; a run restored or pinned at that moment is skipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from analysis.audit.record import record_many
from analysis.models import TERMINAL_STATES, Attempt, Device, Host, MatrixCell, Run, RunLog
from analysis.models.querysets import RunQuerySet
from analysis.runs.bulk import BulkResult, changeable_ids, ids_of, run_targets
from analysis.runs.matrix_store import cells_renew

LINES_KEPT_EACH_END = 20
_IDS_AT_ONCE = 500


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


def runs_old(before: datetime) -> RunQuerySet:
    ended = Run.objects.filter(
        finished_at__isnull=False, finished_at__lt=before, state__in=TERMINAL_STATES, is_baseline=False
    )
    return ended.filter(Q(restored_at=None) | Q(restored_at__lt=before)).order_by("finished_at")


def runs_deleted(before: datetime) -> RunQuerySet:
    return Run.all_runs.filter(deleted_at__isnull=False, deleted_at__lt=before, is_baseline=False).order_by()


def runs_with_old_logs(after: datetime | None, before: datetime) -> RunQuerySet:
    """Find runs that ended between the two moments; earlier ones are trimmed already."""
    ended = Run.all_runs.filter(finished_at__isnull=False, finished_at__lt=before).order_by("finished_at", "pk")
    return ended if after is None else ended.filter(finished_at__gt=after)


def runs_expire(*, before: datetime, limit: int) -> int:
    """Delete the oldest runs, as people do: they can be restored. The matrix gets the next newest results."""
    with transaction.atomic():
        ids = _locked(runs_old(before), limit)
        Run.objects.filter(pk__in=ids).update(deleted_at=Now())
        shown = MatrixCell.objects.filter(run__in=ids).values_list("run", flat=True)
        cells_renew(run_ids=set(shown))
    return len(ids)


def runs_purge(*, before: datetime, limit: int) -> int:
    with transaction.atomic():
        ids = _locked(runs_deleted(before), limit)
        shown = set(MatrixCell.objects.filter(run__in=ids).values_list("run", flat=True))
        if shown:
            cells_renew(run_ids=shown)
        Run.all_runs.filter(pk__in=ids).only("pk").delete()
    return len(ids)


def logs_trim(*, after: datetime | None, before: datetime, limit: int) -> tuple[int, datetime | None]:
    """Trim the logs of up to `limit` runs; returns the number of removed lines, and when the last run ended, if any."""
    with transaction.atomic():
        found = list(runs_with_old_logs(after, before).values_list("pk", "finished_at", "is_baseline")[:limit])
        if not found:
            return 0, None
        reached = found[-1][1]
        # all that ended at the same moment belong to this batch: the next one begins after it
        found += (
            runs_with_old_logs(after, before)
            .filter(finished_at=reached)
            .values_list("pk", "finished_at", "is_baseline")
        )
        gone = _lines_between({pk for pk, _, is_baseline in found if not is_baseline})
        for first in range(0, len(gone), _IDS_AT_ONCE):
            RunLog.objects.filter(pk__in=gone[first : first + _IDS_AT_ONCE]).delete()
    return len(gone), reached


def reported_devices_purge(*, limit: int) -> int:
    """Remove reported devices that no run names any more, of up to `limit` hosts; returns of how many.

    A pod of a cluster is a host by itself: its row goes with its last device, unless somebody set its maintenance.
    """
    runs, attempts = (rows.filter(device=OuterRef("pk")) for rows in (Run.all_runs.all(), Attempt.objects.all()))
    unused = Device.all_devices.filter(~Exists(runs), ~Exists(attempts), is_reported=True).order_by()
    with transaction.atomic():
        named = Host.objects.filter(Exists(unused.filter(host=OuterRef("pk")))).order_by("pk")
        hosts = list(named.select_for_update(skip_locked=True).values_list("pk", flat=True)[:limit])
        # read again: what was reported from them until they were locked is seen only now
        unused.filter(host__in=hosts).delete()
        untouched = {"drained": False, "maintenance_from": None, "maintenance_until": None, "maintenance_note": ""}
        Host.objects.filter(pk__in=hosts, devices=None, **untouched).delete()
    return len(hosts)


def _locked(runs: RunQuerySet, limit: int) -> list[int]:
    return list(runs.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)[:limit])


def _lines_between(run_ids: Iterable[int]) -> list[int]:
    """Return each attempt's lines that are neither among its first or last, nor a warning or an error."""
    lines = RunLog.objects.filter(run__in=run_ids).order_by("run", "attempt", "sequence")
    by_attempt: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    for pk, run_id, attempt, level in lines.values_list("pk", "run_id", "attempt", "level").iterator():
        by_attempt[run_id, attempt].append((pk, level))
    keep = LINES_KEPT_EACH_END
    return [pk for rows in by_attempt.values() for pk, level in rows[keep:-keep] if level == RunLog.Level.INFO]
