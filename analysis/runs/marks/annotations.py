"""What people write on stored runs: name, note, tags, baseline, notes on steps of a trend; and views of the history."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import User
from django.db import transaction

from analysis.audit.record import record, record_many
from analysis.models import Run, SavedView, State, Tag, TrendAcknowledgement
from analysis.models.annotations import NAME_LENGTH, QUERY_LENGTH, STEP_NOTE_LENGTH, TAG_LENGTH
from analysis.models.text import plain_line, plain_text, storable_text
from analysis.permissions import may_manage
from analysis.runs.bulk import BulkResult, changeable_ids, ids_of, run_targets
from analysis.runs.columns.run_text import run_text_keep

NOTE_LENGTH = 10_000
TAGS_PER_RUN = 20
VIEWS_PER_PERSON = 100


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
    mine = changeable_ids(run_ids, by)
    row = _tag(tag)
    through = Run.tags.through
    with transaction.atomic():
        through.objects.bulk_create((through(run_id=pk, tag_id=row.pk) for pk in mine), ignore_conflicts=True)
        record_many("run.tag", run_targets(mine), after={"tag": row.name})
    return BulkResult(len(mine), not_allowed=len(run_ids) - len(mine))


def runs_untag(*, run_ids: Collection[int], by: User, tag: str) -> BulkResult:
    """Remove a tag from these runs; a tag without runs is deleted."""
    mine = changeable_ids(run_ids, by)
    through = Run.tags.through.objects.filter(tag__name=tag)
    with transaction.atomic():
        had = list(through.filter(run__in=mine).values_list("run", flat=True))
        done, _ = through.filter(run__in=had).delete()
        record_many("run.untag", run_targets(had), before={"tag": tag})
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
        changed = ids_of(fit.exclude(is_baseline=is_baseline))
        done = fit.update(is_baseline=is_baseline)
        details = {"before": {"is_baseline": not is_baseline}, "after": {"is_baseline": is_baseline}}
        record_many("run.baseline", run_targets(changed), **details)
    reason = "not a finished measurement on an unshared card, or reported from where nobody trusts yet"
    return BulkResult(done, len(run_ids) - count, count - done, reason)


def step_acknowledge(*, run: Run, metric: str, note: str, acknowledged_by: User) -> bool:
    """Store a note on the step at this run; False: another person's stands. Raises ValidationError if unprintable."""
    plain_text(note)
    with transaction.atomic():
        list(Run.all_runs.select_for_update().filter(pk=run.pk).values_list("pk"))  # one writer at a time
        earlier = TrendAcknowledgement.objects.select_related("acknowledged_by").filter(run=run, metric=metric).first()
        if earlier is not None and earlier.acknowledged_by_id != acknowledged_by.pk and not may_manage(acknowledged_by):
            return False
        columns = {"note": note.strip()[:STEP_NOTE_LENGTH], "acknowledged_by": acknowledged_by}
        TrendAcknowledgement.objects.update_or_create(run=run, metric=metric, defaults=columns)
        record(
            "run.acknowledge",
            target=run,
            before={"note": earlier.note, "acknowledged_by": str(earlier.acknowledged_by or "")} if earlier else None,
            after={"metric": metric, "note": columns["note"]},
        )
    return True


def saved_view_set(*, owner: User, name: str, query: str, is_shared: bool) -> SavedView | None:
    """Save a view over one of its name; None: too long, nameless, too many. Raises ValidationError if unprintable."""
    plain_line(name.strip())
    name = storable_text(name.strip(), NAME_LENGTH)
    own_views = SavedView.objects.filter(owner=owner)
    if not name or len(query) > QUERY_LENGTH or own_views.exclude(name=name).count() >= VIEWS_PER_PERSON:
        return None
    view, _ = SavedView.objects.update_or_create(
        owner=owner, name=name, defaults={"query": query, "is_shared": is_shared}
    )
    return view


def saved_view_delete(*, view_id: int, by: User) -> bool:
    """Delete a view, as its owner or a GPU manager. False: there is no such view, or it is another person's."""
    views = SavedView.objects.filter(pk=view_id)
    if not may_manage(by):
        views = views.filter(owner=by)
    return bool(views.delete()[0])


def _tag(name: str) -> Tag:
    row = Tag(name=name.strip().lower()[: TAG_LENGTH + 1])
    found = Tag.objects.filter(name=row.name).first()
    if found is None:
        row.full_clean(validate_unique=False)
        found, _ = Tag.objects.get_or_create(name=row.name)
    return found
