"""Requests that may be repeated: ETags, and idempotency keys.

A client that got no response may repeat its request with the same key; one run is stored. The key's row is created
first, in the transaction that creates the run. A second request with the key waits for the first to end, and then finds
its run; if the first failed, the second continues in its place. Retention removes keys after a day: a request that is
repeated later is a new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.http import parse_etags
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from analysis.http.problem_details import Problem
from analysis.models import IdempotencyKey, Run
from analysis.models.accounts import KEY_LENGTH
from analysis.permissions import signed_in_user

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"


def run_once(request: Request, body: dict[str, Any], make: Callable[[], Run]) -> tuple[Run, bool]:
    """Store the run that `make` creates, once. Also returns whether an earlier request with this key stored it."""
    key = _key(request)
    if key is None:
        return make(), False
    digest = hashlib.sha256(json.dumps([request.path, body], sort_keys=True).encode()).hexdigest()
    if (run := _earlier(request.user, key, digest)) is not None:
        return run, True
    try:
        with transaction.atomic():
            row = IdempotencyKey.objects.create(owner=signed_in_user(request), key=key, digest=digest)
            run = make()
            IdempotencyKey.objects.filter(pk=row.pk).update(run=run)
            return run, False
    except IntegrityError:  # idempotency_key_once_per_owner: a request with this key was quicker
        if (run := _earlier(request.user, key, digest)) is None:
            raise
        return run, True


def _key(request: Request) -> str | None:
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not (0 < len(key) <= KEY_LENGTH and key.isascii() and key.isprintable()):
        raise Problem(400, detail=f"{HEADER} must be 1 to {KEY_LENGTH} printable ASCII characters.", code="bad_key")
    return key


def _earlier(owner: Any, key: str, digest: str) -> Run | None:
    row = IdempotencyKey.objects.filter(owner=owner, key=key).first()
    if row is None:
        return None
    if row.run_id is None:
        raise RuntimeError("the transaction that made this key named no run")
    if row.digest != digest:
        raise Problem(422, detail=f"This {HEADER} was used for another request.", code="key_reused")
    run: Run = Run.all_runs.with_places().get(pk=row.run_id)
    if run.deleted_at is not None:
        detail = (
            f"Run {run.pk}, which was stored under this {HEADER}, was deleted meanwhile: "
            f"POST /api/v1/runs/{run.pk}/restore/ brings it back, another key stores a new one."
        )
        raise Problem(409, detail=detail, code="run_deleted")
    return run


def etag_of(summary: Mapping[str, Any], *others: Any) -> str:
    """Return a hash of the response; without `updated_at`, which each heartbeat changes, though nothing shown."""
    return f'"{hashlib.sha256(JSONRenderer().render([summary, *others])).hexdigest()[:32]}"'


def is_known(request: Request, etag: str) -> bool:
    known = [tag.removeprefix("W/") for tag in parse_etags(request.headers.get("If-None-Match", ""))]
    return etag in known or known == ["*"]


def refuse_if_changed(request: Request, etag: str) -> None:
    """Refuse with 412 when the run changed since the client read it (If-Match). Without the header, accept."""
    given = request.headers.get("If-Match")
    if given is not None and etag not in parse_etags(given) and given.strip() != "*":
        raise Problem(
            412, detail="The run has changed since you read it; read it again.", code="changed", headers={"ETag": etag}
        )
