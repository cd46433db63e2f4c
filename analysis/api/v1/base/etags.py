"""ETags: a run is sent again only if it changed, and If-Match prevents changes of an outdated version."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from django.utils.http import parse_etags
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from analysis.http.problem_details import Problem


def etag_of(summary: Mapping[str, Any], *others: Any) -> str:
    """Return a hash of the content of the response.

    `updated_at` is not included: each heartbeat changes it, without changing what is shown.
    """
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
