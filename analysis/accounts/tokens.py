"""API tokens: create, find by secret, mark as used, revoke."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from analysis.audit.record import record
from analysis.database import person_lock
from analysis.models import ApiToken, Trust
from analysis.models.accounts import READS, REPORTS, TOKEN_NAME_LENGTH, WRITES
from analysis.permissions import may_manage
from engine.errors import SpecError

TOKENS_PER_PERSON = 50
SECRET_BYTES = 32
_PREFIX_LENGTH = len(READS) + 6
_USE_NOTED_EVERY = timedelta(minutes=1)


def token_create(
    *,
    owner: User,
    name: str,
    may_write: bool,
    expires_at: datetime | None,
    only_reports: bool = False,
    is_trusted: bool = False,
) -> tuple[ApiToken, str]:
    """Create a token. Returns its row and the secret, which is not stored. Raises SpecError, naming the field.

    `only_reports`: refused everywhere else; `is_trusted`, for GPU managers: its reports count from the first run.
    """
    name = name.strip()
    if not name or len(name) > TOKEN_NAME_LENGTH or not name.isprintable():
        raise SpecError("name", f"must state the token's purpose in 1 to {TOKEN_NAME_LENGTH} printable characters")
    if expires_at is not None and expires_at <= timezone.now():
        raise SpecError("expires_at", "must be in the future")
    kind = REPORTS if only_reports else WRITES if may_write else READS
    secret = kind + secrets.token_urlsafe(SECRET_BYTES)
    with transaction.atomic():
        person_lock(owner)
        if ApiToken.objects.live().filter(owner=owner).count() >= TOKENS_PER_PERSON:
            raise SpecError("name", f"a person can have at most {TOKENS_PER_PERSON} tokens; revoke one first")
        token = ApiToken.objects.create(
            owner=owner,
            name=name,
            prefix=secret[:_PREFIX_LENGTH],
            digest=digest_of(secret),
            may_write=may_write or only_reports,
            expires_at=expires_at,
        )
        record("token.create", target=token, after=_audit_details(token))
        if is_trusted:
            trust = Trust.objects.create(token=token, trusted_by=owner)
            record("trust.give", target=trust, after={"token": str(token), "host": ""})
    return token, secret


def token_revoke(*, token_id: int, by: User) -> bool:
    """Revoke a token of one's own; GPU managers, any. False: another person's, already revoked, or unknown."""
    tokens = ApiToken.objects.filter(pk=token_id, revoked_at=None)
    if not may_manage(by):
        tokens = tokens.filter(owner=by)
    with transaction.atomic():
        token = tokens.select_related("owner").first()
        if token is None or not tokens.update(revoked_at=Now()):
            return False
        record("token.revoke", target=token, before=_audit_details(token))
    return True


def token_of(secret: str) -> ApiToken | None:
    """Find the valid token with this secret, and its owner: one lookup in a unique index, whatever was sent."""
    return ApiToken.objects.live().select_related("owner").filter(digest=digest_of(secret)).first()


def token_note_use(token: ApiToken, address: str | None) -> None:
    """Store time and address of the last use, at most once a minute: polling must not write with every read."""
    if token.last_used_at is not None and timezone.now() - token.last_used_at < _USE_NOTED_EVERY:
        return
    is_due = Q(last_used_at=None) | Q(last_used_at__lte=Now() - _USE_NOTED_EVERY)
    ApiToken.objects.filter(is_due, pk=token.pk).update(last_used_at=Now(), last_used_address=address)


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _audit_details(token: ApiToken) -> dict[str, object]:
    """Return what the audit log stores of a token: never its digest."""
    expires_at = token.expires_at.isoformat() if token.expires_at else None
    details = {"owner": token.owner.get_username(), "name": token.name, "prefix": token.prefix}
    return {**details, "may_write": token.may_write, "expires_at": expires_at}
