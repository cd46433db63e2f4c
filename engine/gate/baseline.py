"""Finds a baseline: a file, one run of a portal, or the newest run there of the same workload and device.

The token is read from MEMORYMARK_TOKEN, or the file that MEMORYMARK_TOKEN_FILE names, and is sent only to the given
address: a redirect is refused, because it could lead to another host.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

from ..errors import SpecError
from ..facts.result_file import read_document
from ..questions.documents.measured import Measured
from ..report.address import TOKEN_VARIABLE, Address, token_of
from ..report.http import Portal
from ..report.protocol import PortalAnswer, describe
from .compare import workload_differences
from .origin import ResultOrigin

FIELD = "baseline"
TIMEOUT_SECONDS, MOST_BYTES, MOST_LOOKED_AT = 30.0, 64 * 2**20, 20
_FILTERS = ("precision", "optimizer", "sequence_length", "image_size")
"""Settings for the portal's filter, so that other runs do not hide the one to compare with."""
_OF_TOKEN = f"; is {TOKEN_VARIABLE} set to a token that may read it?"
_REMEDIES = {200: "; is it a run's API address, or the portal's?", 401: _OF_TOKEN, 403: _OF_TOKEN}
_RUN = re.compile(r"/api/v1/runs/\d+(/result)?/?$")


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a result is compared with: its place (a file or an address), and its origin according to its portal."""

    measured: Measured
    origin: ResultOrigin

    @classmethod
    def of(cls, document: object, place: str) -> Baseline:
        return cls(Measured.of(document, FIELD), ResultOrigin.of(document, FIELD, place))


def find_baseline(place: str, now: Measured, *, trusted_only: bool = False) -> Baseline:
    """Return the baseline. Raises SpecError where none is found, or with `trusted_only` none is trusted."""
    is_from_portal = urlsplit(place).scheme in ("http", "https")
    found = _found(place, now, is_from_portal)
    if trusted_only:
        found.origin.check_trusted(is_from_portal=is_from_portal)
    return found


def _found(place: str, now: Measured, is_from_portal: bool) -> Baseline:
    if not is_from_portal:
        return Baseline.of(read_document(place, FIELD), place)
    if _RUN.search(urlsplit(place).path):
        return Baseline.of(_content(place, _answer(place)), place)
    for address, run in _newest_runs(place.rstrip("/"), now):
        try:
            found = Baseline.of(run, address)
        except SpecError:
            continue  # stored by another version, with other members; an older run may be readable
        keys = now.environment.get("run_key"), found.measured.environment.get("run_key")
        is_itself = now.probes == found.measured.probes if None in keys else keys[0] == keys[1]  # already reported
        if not workload_differences(now, found.measured) and not is_itself:
            return found
    which = f"trusted runs of {now.spec.get('model')} on {now.device.name} with these settings"
    raise SpecError(FIELD, f"{place} has no baseline among its {MOST_LOOKED_AT} newest {which}, but this run at most")


def _newest_runs(portal: str, now: Measured) -> Iterator[tuple[str, Mapping[str, Any]]]:
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


def _answer(address: str) -> PortalAnswer:
    token = token_of(os.environ.get(TOKEN_VARIABLE, ""), os.environ)
    return Portal(Address(address, token), timeout_seconds=TIMEOUT_SECONDS).get("", most_bytes=MOST_BYTES)


def _content(address: str, answer: PortalAnswer) -> Mapping[str, Any]:
    """Return the JSON object of an answer. Raises SpecError, whose text never holds the token."""
    if answer.status != HTTPStatus.OK or not answer.body:
        raise SpecError(FIELD, f"{address}: {describe(answer)}{_REMEDIES.get(answer.status, '')}")
    return answer.body
