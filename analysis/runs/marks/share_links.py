"""Links that show one run without a login: create, withdraw, find by secret.

People who may change a run may share it. A GPU manager sets how long links are valid at most, by the retention rule of
links; where that rule has no number of days, a link may also be valid until it is withdrawn.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from analysis.accounts.tokens import SECRET_BYTES, digest_of
from analysis.audit.record import record
from analysis.models import RetentionRule, Run, ShareLink, State
from analysis.models.annotations import ShareLinkQuerySet
from analysis.models.retention import FIRST_DAYS
from analysis.runs.kinds import rules_of
from engine.errors import SpecError

LINKS_PER_RUN = 20
DAYS_OFFERED = (1, 7, 30, 90, 365)
_PREFIX_LENGTH = 6


def days_allowed() -> tuple[int | None, ...]:
    """Return the numbers of days that a person may choose, and None for "until it is withdrawn" where allowed."""
    what = RetentionRule.What.SHARE_LINKS
    rule = RetentionRule.objects.filter(what=what).first()
    most = FIRST_DAYS[what] if rule is None else rule.days_applied
    if most is None:
        return (*DAYS_OFFERED, None)
    return tuple(days for days in DAYS_OFFERED if days <= most) or (most,)


def is_shareable(run: Run) -> bool:
    """Whether a run has a result that a link can show: a finished measurement, or an estimate of one card."""
    return run.state == State.FINISHED and rules_of(run).is_shareable(run)


def share_link_create(*, run_id: int, by: User, days: int | None) -> tuple[ShareLink, str]:
    """Create a link. Returns its row and the secret, which is not stored. Raises SpecError, naming the field."""
    allowed = days_allowed()
    if days not in allowed:
        words = ", ".join("null (until it is withdrawn)" if each is None else str(each) for each in allowed)
        raise SpecError("days", f"must be one of {words}")
    secret = secrets.token_urlsafe(SECRET_BYTES)
    with transaction.atomic():
        # locked, so that two requests cannot both create the last allowed link
        run = Run.objects.changeable_by(by).select_for_update(of=("self",)).defer("result").filter(pk=run_id).first()
        if run is None:
            raise SpecError("run", "is another person's, or there is no such run")
        if not is_shareable(run):
            raise SpecError("run", "must be a finished measurement, or a finished estimate of one card")
        if run.share_links.live().count() >= LINKS_PER_RUN:
            raise SpecError("run", f"can have at most {LINKS_PER_RUN} links; withdraw one first")
        link = ShareLink.objects.create(
            run=run,
            created_by=by,
            prefix=secret[:_PREFIX_LENGTH],
            digest=digest_of(secret),
            ends_at=None if days is None else timezone.now() + timedelta(days=days),
        )
        record("share.create", target=run, after=_audit_details(link))
    return link, secret


def share_link_withdraw(*, link_id: int, by: User) -> bool:
    """End a link of a run that this person may change. False: another person's, withdrawn already, or unknown."""
    links = share_links_of(by).filter(pk=link_id, withdrawn_at=None)
    with transaction.atomic():
        link = links.select_related("run").defer("run__result").first()
        if link is None or not ShareLink.objects.filter(pk=link.pk, withdrawn_at=None).update(withdrawn_at=Now()):
            return False
        record("share.withdraw", target=link.run, before=_audit_details(link))
    return True


def share_links_of(user: User) -> ShareLinkQuerySet:
    return ShareLink.objects.filter(run__in=Run.all_runs.changeable_by(user).order_by().values("pk"))


def share_link_of(secret: str) -> ShareLink | None:
    """Find the valid link with this secret, and its run. Ended and unknown ones take the same single lookup."""
    digest = digest_of(secret)
    link = ShareLink.objects.live().select_related("run").filter(digest=digest).first()
    # the index finds by the digest, whose bytes nobody can choose; the comparison itself takes the same time for all
    return link if link is not None and secrets.compare_digest(link.digest, digest) else None


def _audit_details(link: ShareLink) -> dict[str, object]:
    """Return what the audit log stores of a link: never its digest."""
    return {"link": link.pk, "prefix": link.prefix, "ends_at": link.ends_at.isoformat() if link.ends_at else None}
