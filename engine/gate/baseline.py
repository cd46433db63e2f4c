"""Where a baseline comes from: a file, one run of a portal, or the newest run there of the same workload and device.

The token is read from MEMORYMARK_TOKEN alone, and goes to the address that was given and nowhere else: a redirect is
refused, because it could lead to another host.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

from ..errors import SpecError
from ..report.address import TOKEN_VARIABLE, Address, checked_token
from ..report.http import Portal
from ..report.protocol import Answer, describe
from ..result_file import read_document
from .compare import Measured, workload_differences

FIELD = "baseline"
TIMEOUT_SECONDS, MOST_BYTES, MOST_LOOKED_AT = 30.0, 64 * 2**20, 20
_FILTERS = ("precision", "optimizer", "sequence_length", "image_size")
"""Settings that the portal filters by, so that runs of others do not hide the one to compare with."""
_RUN = re.compile(r"/api/v1/runs/\d+(/result)?/?$")


def find_baseline(place: str, now: Measured) -> tuple[Measured, str]:
    """Return the baseline, and where it is from. Raises SpecError where there is none."""
    if urlsplit(place).scheme not in ("http", "https"):
        return Measured.of(read_document(place, FIELD), FIELD), place
    if _RUN.search(urlsplit(place).path):
        return Measured.of(_content(place, _answer(place)), FIELD), place
    for address, run in _newest_runs(place.rstrip("/"), now):
        try:
            found = Measured.of(run, FIELD)
        except SpecError:
            continue  # stored by a version whose results had other members; an older run may be readable
        if not workload_differences(now, found) and not _is_same_run(now, found):
            return found, address
    which = f"trusted runs of {now.spec.get('model')} on {now.device.name} with these settings"
    raise SpecError(FIELD, f"{place} has no baseline among its {MOST_LOOKED_AT} newest {which}, but this run at most")


def _newest_runs(portal: str, now: Measured) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the newest finished runs of this model and card that the portal measured itself or trusts."""
    wanted = {"model": now.spec.get("model"), "gpu": now.device.name, "kind": "measurement", "state": "finished"}
    wanted |= {"origin": "here-or-trusted"}
    wanted |= {name: now.spec[name] for name in _FILTERS if now.spec.get(name) is not None}
    address = f"{portal}/api/v1/runs/?{urlencode(wanted)}"
    answer = _answer(address)
    if answer.status == HTTPStatus.BAD_REQUEST:
        why = describe(answer)
        raise SpecError(FIELD, f"{portal} is of another version, update it or give the address of a run: {why}")
    listed = _content(address, answer).get("results")
    for row in (listed if isinstance(listed, list) else [])[:MOST_LOOKED_AT]:
        address = f"{portal}/api/v1/runs/{int(row['id'])}/"
        yield address, _content(address, _answer(address))


def _is_same_run(now: Measured, found: Measured) -> bool:
    """Whether the portal's run is this very result, which was reported there before it was checked."""
    keys = now.environment.get("run_key"), found.environment.get("run_key")
    return now.probes == found.probes if None in keys else keys[0] == keys[1]


def _answer(address: str) -> Answer:
    token = checked_token(os.environ.get(TOKEN_VARIABLE, ""))
    return Portal(Address(address, token), timeout_seconds=TIMEOUT_SECONDS).get("", most_bytes=MOST_BYTES)


def _content(address: str, answer: Answer) -> Mapping[str, Any]:
    """Return the JSON object of an answer. Raises SpecError, which never holds the token."""
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
