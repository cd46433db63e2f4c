"""The same run once more: retried, run again, or timed again."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import User
from django.db import transaction

from analysis.accounts.rate_limit import CREATE, RateLimited, check_rate_limit
from analysis.audit.record import record
from analysis.models import Run, State
from analysis.runs.bulk import BulkResult
from analysis.runs.kinds import rules_of
from analysis.runs.queue.create import run_create
from analysis.runs.queue.placement import Placement, placement_of
from engine.errors import SpecError


def runs_retry(*, run_ids: Collection[int], by: User) -> BulkResult:
    """Queue these runs again as this person's, within the quota; the runs stay, so no right to them is needed."""
    runs = Run.objects.filter(pk__in=run_ids).select_related("requested_device__host").order_by("pk")
    over = [run for run in runs.defer("result") if run.is_over]
    done, reason = 0, "not over yet"
    for run in over:
        try:
            check_rate_limit(CREATE, by)
            run_again(run=run, requested_by=by)
            done += 1
        except SpecError as error:
            reason = str(error)
        except RateLimited as error:
            reason = str(error).removesuffix(".")
            break
    return BulkResult(done, not_possible=len(run_ids) - done, reason=reason)


def run_again(
    *, run: Run, requested_by: User | None, is_timing_only: bool = False, compares_speeds: bool = False
) -> Run:
    """Queue a new run with the same spec and placement. Raises SpecError when it can no longer run.

    `is_timing_only`: on the same device and with this run's probes, only the speeds and the certificate are measured.
    `compares_speeds`: a training of one's own compares them, whatever the first run was requested to do.
    """
    if is_timing_only:
        if not run.is_search or run.state != State.FINISHED:
            raise SpecError("run", "only a finished measurement can be timed again")
        if run.is_reported:
            raise SpecError("run", "it ran on a machine that no worker of this portal serves")
        if not rules_of(run).takes_probes:
            raise SpecError("run", "a command compares its speeds in starts of its own: run it again as a whole")
    spec = rules_of(run).requested(run)
    if compares_speeds or is_timing_only:
        spec = rules_of(run).comparing_speeds(spec)
    with transaction.atomic():
        again = run_create(
            spec=spec,
            place=Placement(device=run.device) if is_timing_only else placement_of(run),
            requested_by=requested_by,
            priority=min(run.priority, Run.Priority.NORMAL),
            accepts_shared_device=run.accepts_shared_device,
            uses_device_price=run.uses_device_price,
            takes_over=run if is_timing_only else None,
        )
        record("run.retry", target=run, after={"run": again.pk})
    return again
