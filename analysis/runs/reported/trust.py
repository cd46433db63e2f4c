"""Whose reported runs count like those measured here: a GPU manager trusts a token or a host, and may revoke it."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from analysis.audit.record import record
from analysis.models import ApiToken, Run, Trust
from analysis.models.querysets import RunQuerySet
from analysis.runs.matrix_store import cells_renew

_RENEWED_AT_ONCE = 500


def is_trusted(token: ApiToken | None, host: str) -> bool:
    """Whether this token's runs from this host count; to be called in the transaction that stores one.

    The rows are locked: trust revoked meanwhile is revoked for that run too, and `trust_give` waits for the run.
    """
    given = Trust.objects.given().filter(Q(token__isnull=False, token=token) | Q(host=host))
    return bool(given.select_for_update(no_key=True).values_list("pk"))


def trust_give(*, by: User, token: ApiToken | None = None, host: str = "") -> Trust:
    """Trust a token or a host, for the runs that it reported and will report. Given again, it is the same trust."""
    with transaction.atomic():
        _wait_for_runs_being_stored()
        given = Trust.objects.given().select_for_update(no_key=True)
        trust, is_new = given.get_or_create(token=token, host=host, defaults={"trusted_by": by})
        if is_new:
            record("trust.give", target=trust, after={"token": str(token or ""), "host": host})
        _apply(_of(trust).filter(is_trusted=False), is_trusted=True)
    return trust


def trust_revoke(*, trust_id: int, by: User) -> bool:
    """Stop trusting. Runs that no other trust covers count no longer; baselines among them are unpinned."""
    with transaction.atomic():
        trust = Trust.objects.given().select_related("token").filter(pk=trust_id).first()
        if trust is None or not Trust.objects.given().filter(pk=trust_id).update(revoked_at=Now(), revoked_by=by):
            return False
        record("trust.revoke", target=trust, before={"token": str(trust.token or ""), "host": trust.host})
        others = Trust.objects.given().filter(
            Q(token__isnull=False, token=OuterRef("report__token")) | Q(host=OuterRef("reported_from"))
        )
        _apply(_of(trust).filter(~Exists(others), is_trusted=True), is_trusted=False, is_baseline=False)
    return True


def _wait_for_runs_being_stored() -> None:
    """Wait for runs that did not see this trust in `is_trusted`, to find them here; SQLite has one writer anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f'LOCK TABLE "{Trust._meta.db_table}" IN EXCLUSIVE MODE')


def _of(trust: Trust) -> RunQuerySet:
    reported = Run.all_runs.reported().order_by()
    return reported.filter(report__token=trust.token) if trust.token else reported.filter(reported_from=trust.host)


def _apply(runs: RunQuerySet, **columns: bool) -> None:
    numbers = list(runs.values_list("pk", flat=True))
    for first in range(0, len(numbers), _RENEWED_AT_ONCE):
        some = numbers[first : first + _RENEWED_AT_ONCE]
        Run.all_runs.filter(pk__in=some).update(**columns)
        cells_renew(run_ids=some)
