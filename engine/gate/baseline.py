"""Where a baseline comes from: a file, one run of a portal, or the newest run there of the same workload and device.

The token is read from MEMORYMARK_TOKEN alone, and goes to the address that was given and nowhere else: a redirect is
refused, because it could lead to another host.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from ..errors import SpecError
from ..report.address import TOKEN_VARIABLE, Address, checked_token
from ..report.http import Portal
from .compare import Measured, workload_differences

FIELD = "baseline"
TIMEOUT_SECONDS, MOST_BYTES, MOST_LOOKED_AT = 30.0, 64 * 2**20, 20
_RUN = re.compile(r"/api/v1/runs/\d+(/result)?/?$")


def read_document(path: str, field: str) -> Mapping[str, Any]:
    """Read a result from a file. Raises SpecError for the field."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as exc:
        raise SpecError(field, f"{path} cannot be read: {exc.strerror}") from exc
    except (ValueError, RecursionError) as exc:
        raise SpecError(field, f"{path} is not valid JSON: {exc}") from exc
    if not isinstance(content, dict):
        raise SpecError(field, f"{path} is no result: not a JSON object")
    return content


def find_baseline(place: str, now: Measured) -> tuple[Measured, str]:
    """Return the baseline, and where it is from. Raises SpecError where there is none."""
    if urlsplit(place).scheme not in ("http", "https"):
        return Measured.of(read_document(place, FIELD), FIELD), place
    if _RUN.search(urlsplit(place).path):
        return Measured.of(_get(place), FIELD), place
    for address, run in _newest_runs(place.rstrip("/"), now):
        found = Measured.of(run, FIELD)
        if not workload_differences(now, found) and not _is_same_run(now, found):
            return found, address
    raise SpecError(FIELD, f"{place} has no trusted run of this workload on {now.device.name} but this one, at most")


def _newest_runs(portal: str, now: Measured) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the newest finished runs of this model and card that the portal trusts."""
    wanted = {"model": now.spec.get("model"), "gpu": now.device.name, "kind": "measurement", "state": "finished"}
    listed = _get(f"{portal}/api/v1/runs/?{urlencode(wanted)}").get("results")
    for row in (listed if isinstance(listed, list) else [])[:MOST_LOOKED_AT]:
        if row.get("is_trusted", True):
            address = f"{portal}/api/v1/runs/{int(row['id'])}/"
            yield address, _get(address)


def _is_same_run(now: Measured, found: Measured) -> bool:
    """Whether the portal's run is this very result, which was reported there before it was checked."""
    keys = now.environment.get("run_key"), found.environment.get("run_key")
    return now.probes == found.probes if None in keys else keys[0] == keys[1]


def _get(address: str) -> Mapping[str, Any]:
    """Get a JSON object. Raises SpecError, which never holds the token."""
    token = checked_token(os.environ.get(TOKEN_VARIABLE, ""))
    answer = Portal(Address(address, token), timeout_seconds=TIMEOUT_SECONDS).get("", most_bytes=MOST_BYTES)
    if not answer.status:
        raise SpecError(FIELD, f"{address} cannot be reached: {answer.reason}")
    if answer.status != HTTPStatus.OK:
        remedy = f"; is {TOKEN_VARIABLE} set to a token that may read it?" if answer.status in (401, 403) else ""
        remedy = f"; {answer.reason}" if answer.reason else remedy
        raise SpecError(FIELD, f"{address} answered {answer.status} {_phrase(answer.status)}{remedy}")
    if not answer.body:
        raise SpecError(FIELD, f"{address} answered no JSON object: is it a run's API address, or the portal's?")
    return answer.body


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
