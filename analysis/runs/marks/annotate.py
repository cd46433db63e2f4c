"""What people do with runs that are stored: name, note, tags, baseline, delete and restore. One run or many.

A person changes their own runs; GPU managers, all. What was not done is counted, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models.functions import Now

from analysis.accounts.rate_limit import CREATE, RateLimited, check_rate_limit
from analysis.audit.record import record, record_many
from analysis.models import TERMINAL_STATES, Run, State, Tag
from analysis.models.annotations import NAME_LENGTH, TAG_LENGTH
from analysis.models.querysets import RunQuerySet
from analysis.models.text import plain_line, plain_text, storable_text
from analysis.runs.columns.matrix_store import cells_renew
from analysis.runs.columns.run_text import run_text_keep
from analysis.runs.kinds import rules_of
from analysis.runs.origins import origin_rules
from analysis.runs.queue.create import run_create, runs_cancel
from analysis.runs.queue.placement import Placement, placement_of
from engine.errors import SpecError

if TYPE_CHECKING:
    from django.contrib.auth.models import User

NOTE_LENGTH = 10_000
TAGS_PER_RUN = 20


@dataclass(frozen=True, slots=True)
class BulkResult:
    """The outcome of a bulk action: runs that were changed, not changeable by this person or gone, and not eligible."""

    done: int
    not_allowed: int = 0
    not_possible: int = 0
    reason: str = ""


def run_annotate(*, run_id: int, by: User, name: str, note: str, tags: Collection[str]) -> BulkResult:
    """Replace a run's name, note and tags. Raises ValidationError for an invalid tag and for unprintable text."""
    plain_line(name.strip())
    plain_text(note)
    rows = [_tag(tag) for tag in dict.fromkeys(tags)][:TAGS_PER_RUN]
    name, note = storable_text(name.strip(), NAME_LENGTH), storable_text(note.strip(), NOTE_LENGTH)
    with transaction.atomic():
        run = Run.objects.changeable_by(by).filter(pk=run_id).only("pk", "model", "state", "name", "note").first()
        if run is None:
            return BulkResult(0, not_allowed=1)
        before = {"name": run.name, "note": run.note, "tags": sorted(run.tags.values_list("name", flat=True))}
        after = {"name": name, "note": note, "tags": sorted(row.name for row in rows)}
        if changed := [each for each in after if before[each] != after[each]]:
            details = [{each: values[each] for each in changed} for values in (before, after)]
            record("run.annotate", target=run, before=details[0], after=details[1])
        Run.objects.filter(pk=run.pk).update(name=name, note=note)
        run.tags.set(rows)
        run_text_keep(run_id=run.pk)
    return BulkResult(1)


def runs_tag(*, run_ids: Collection[int], by: User, tag: str) -> BulkResult:
    """Put a tag on these runs. Raises ValidationError for an invalid tag."""
    mine = _changeable(run_ids, by)
    row = _tag(tag)
    through = Run.tags.through
    with transaction.atomic():
        through.objects.bulk_create((through(run_id=pk, tag_id=row.pk) for pk in mine), ignore_conflicts=True)
        record_many("run.tag", _named(mine), after={"tag": row.name})
    return BulkResult(len(mine), not_allowed=len(run_ids) - len(mine))


def runs_untag(*, run_ids: Collection[int], by: User, tag: str) -> BulkResult:
    """Remove a tag from these runs; a tag without runs is deleted."""
    mine = _changeable(run_ids, by)
    through = Run.tags.through.objects.filter(tag__name=tag)
    with transaction.atomic():
        had = list(through.filter(run__in=mine).values_list("run", flat=True))
        done, _ = through.filter(run__in=had).delete()
        record_many("run.untag", _named(had), before={"tag": tag})
    if not through.exists():
        Tag.objects.filter(name=tag).delete()
    reason = "did not have the tag"
    return BulkResult(done, len(run_ids) - len(mine), len(mine) - done, reason)


def runs_set_baseline(*, run_ids: Collection[int], by: User, is_baseline: bool) -> BulkResult:
    """Pin or unpin these runs. A baseline must be a finished measurement on an unshared card, and trusted."""
    mine = Run.objects.changeable_by(by).filter(pk__in=run_ids)
    count = mine.count()
    measured = mine.trusted().measuring().filter(state=State.FINISHED)
    fit = measured.exclude(is_shared=True) if is_baseline else mine
    with transaction.atomic():
        changed = _ids(fit.exclude(is_baseline=is_baseline))
        done = fit.update(is_baseline=is_baseline)
        details = {"before": {"is_baseline": not is_baseline}, "after": {"is_baseline": is_baseline}}
        record_many("run.baseline", _named(changed), **details)
    reason = "not a finished measurement on an unshared card, or reported from where nobody trusts yet"
    return BulkResult(done, len(run_ids) - count, count - done, reason)


def runs_delete(*, run_ids: Collection[int], by: User) -> BulkResult:
    """Hide these runs from every list; they can be restored. Runs that are not over have to be cancelled first."""
    mine = _changeable(run_ids, by)
    with transaction.atomic():
        over = _ids(Run.objects.filter(pk__in=mine, state__in=TERMINAL_STATES, is_baseline=False))
        done = Run.objects.filter(pk__in=over).update(deleted_at=Now())
        record_many("run.delete", _named(over))
    cells_renew(run_ids=mine)
    return BulkResult(done, len(run_ids) - len(mine), len(mine) - done, "not over yet or a baseline")


def runs_restore(*, run_ids: Collection[int], by: User) -> BulkResult:
    """Show deleted runs in the lists again."""
    mine = Run.all_runs.changeable_by(by).filter(pk__in=run_ids)
    count = mine.count()
    with transaction.atomic():
        gone = _ids(mine.filter(deleted_at__isnull=False).select_for_update(of=("self",)))
        done = Run.all_runs.filter(pk__in=gone).update(deleted_at=None, restored_at=Now())
        record_many("run.restore", _named(gone))
    cells_renew(run_ids=run_ids)
    return BulkResult(done, len(run_ids) - count, count - done, "not deleted")


def runs_cancel_by(*, run_ids: Collection[int], by: User) -> BulkResult:
    """Cancel waiting runs at once, and request that running ones stop."""
    mine = _changeable(run_ids, by)
    done = runs_cancel(run_ids=mine)
    return BulkResult(done, len(run_ids) - len(mine), len(mine) - done, "over already")


def runs_retry(*, run_ids: Collection[int], by: User) -> BulkResult:
    """Queue these runs again as new runs of this person, as many as their quota allows.

    This needs no right to the runs themselves: they are not changed.
    """
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

    With `is_timing_only` it runs on the same device and starts with this run's probes: only the speeds are compared
    and the certificate is proved again. With `compares_speeds` a training of one's own compares them, whatever the
    first run was requested to do.
    """
    if is_timing_only:
        if not run.is_search or run.state != State.FINISHED:
            raise SpecError("run", "only a finished measurement can be timed again")
        if reason := origin_rules(run).not_timed_again:
            raise SpecError("run", reason)
        if not rules_of(run).takes_probes:
            raise SpecError("run", "a command compares its speeds in starts of its own: run it again as a whole")
    spec = rules_of(run).requested(run)
    if compares_speeds:
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


def _changeable(run_ids: Collection[int], by: User) -> list[int]:
    return _ids(Run.objects.changeable_by(by).filter(pk__in=run_ids))


def _ids(runs: RunQuerySet) -> list[int]:
    return list(runs.values_list("pk", flat=True))


def _named(run_ids: Collection[int]) -> list[tuple[str, str]]:
    """Name runs for the audit log by their numbers alone."""
    return [("run", str(pk)) for pk in run_ids]


def _tag(name: str) -> Tag:
    """Return the row of this tag, created on its first use."""
    row = Tag(name=name.strip().lower()[: TAG_LENGTH + 1])
    found = Tag.objects.filter(name=row.name).first()
    if found is None:
        row.full_clean(validate_unique=False)
        found, _ = Tag.objects.get_or_create(name=row.name)
    return found
