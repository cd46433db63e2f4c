"""ETag: a run is sent again only when it changed, and is changed only by who has seen how it stands."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from django.utils.http import parse_etags
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from analysis.http.problem_details import Problem


def etag_of(summary: Mapping[str, Any], *others: Any) -> str:
    """Of all that the answer is made of, in short: whatever changes the run changes one of these.

    Not of `updated_at`: each heartbeat moves that, and nothing that is shown.
    """
    return f'"{hashlib.sha256(JSONRenderer().render([summary, *others])).hexdigest()[:32]}"'


def is_known(request: Request, etag: str) -> bool:
    """Whether the client has this answer already (If-None-Match)."""
    known = [tag.removeprefix("W/") for tag in parse_etags(request.headers.get("If-None-Match", ""))]
    return etag in known or known == ["*"]


def refuse_if_changed(request: Request, etag: str) -> None:
    """If-Match: 412 when the run is not as the client saw it. Without the header, whatever is sent is done."""
    given = request.headers.get("If-Match")
    if given is not None and etag not in parse_etags(given) and given.strip() != "*":
        raise Problem(
            412, detail="The run has changed since you read it; read it again.", code="changed", headers={"ETag": etag}
        )
