"""PURE: what is sent next, what an answer of the portal means, and when to try again.

Every call may be repeated: the portal counts the events of a run and skips those it has, and identifies a result by the
SHA-256 of its bytes. So after any failure the sender continues at the event that the portal expects next.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from signal import SIGTERM
from typing import Any

from ..errors import EngineError
from ..text.printable import printable

RUN_KEY = re.compile(r"[0-9a-f]{32}")
EVENTS_MOST, PROBES_MOST = 500, 50
BATCH_BYTES_MOST = 900_000
"""The most events, probes and bytes that are sent in one call; the portal accepts 1 MB."""
RESULT_BYTES_MOST = 4 * 1024 * 1024
"""The most bytes of a result that the portal accepts."""
DIGESTS_MOST = 500
"""The most documents that one call may ask the portal for."""
HEARTBEAT_SECONDS, HEARTBEAT_LEAST, HEARTBEAT_MOST = 15.0, 1.0, 300.0
LIVE_SECONDS = 2.0
BACK_OFF_MOST, RETRY_AFTER_MOST = 60.0, 300.0
QUIET_PHASES = frozenset({"timing", "memory", "compiling"})
"""Phases in which speeds are measured: in these the sender only calls when a heartbeat is due."""
STOPPED = "stopped"
"""Error code of a run that was stopped on its machine: a portal calls it interrupted, not failed."""
_TRY_AGAIN = frozenset({0, 408, 425, 429})
_VALUE_MOST, _FIELDS_MOST = 60, 3


def error_of(ended_by: BaseException) -> dict[str, Any]:
    """Return the error that ends a run in the portal: the failure, or "stopped on its machine"."""
    match ended_by:
        case EngineError():
            return ended_by.to_dict()
        case KeyboardInterrupt():
            return _error(STOPPED, "stopped by Ctrl-C where it ran")
        case SystemExit(code=code) if code == 128 + SIGTERM:
            return _error(STOPPED, "stopped by SIGTERM where it ran, as by a scheduler at the job's time limit")
        case BrokenPipeError():
            return _error(STOPPED, "stopped where it ran: nobody read its output any more")
        case Exception():
            return _error(EngineError.code, f"{type(ended_by).__name__}: {ended_by}")
    return _error(STOPPED, f"stopped where it ran, by {type(ended_by).__name__}")


def _error(code: str, message: str) -> dict[str, Any]:
    return {"code": code, "field": None, "message": message}


@dataclass(frozen=True, slots=True)
class PortalAnswer:
    """The answer to a call: the status (0 without an answer, with the reason), and the JSON object of the body."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    retry_after_seconds: float | None = None


def json_object(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object of a text; empty where the text is no JSON object."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


class Meaning(StrEnum):
    ACCEPTED = "accepted"
    ELSEWHERE = "elsewhere"
    """The portal expects another event, which it names."""
    UNKNOWN = "unknown"
    """The portal knows no such run."""
    TOO_LARGE = "too_large"
    LATER = "later"
    REFUSED = "refused"


def meaning_of(answer: PortalAnswer) -> Meaning:
    """Return what an answer means; an answer that no portal gives counts as an unreachable portal."""
    status = answer.status
    if status in (200, 201):
        return Meaning.ACCEPTED if answer.body else Meaning.LATER
    if status in _TRY_AGAIN or status >= 500 or 200 < status < 300:
        return Meaning.LATER
    if status == 409 and _number(answer.body.get("next")) is not None:
        return Meaning.ELSEWHERE
    return {404: Meaning.UNKNOWN, 413: Meaning.TOO_LARGE}.get(status, Meaning.REFUSED)


def describe(answer: PortalAnswer) -> str:
    """Describe in a line why a call was not accepted: ``refused with 403: This token may only read``."""
    if answer.status == 0:
        return f"not reachable: {printable(answer.reason)}"
    if 200 <= answer.status < 300:
        return f"answered with {answer.status}, but not as a portal does"
    detail = printable(str(answer.body.get("detail") or answer.body.get("title") or answer.reason or ""))
    verb = "refused with" if meaning_of(answer) is not Meaning.LATER else "answered with"
    claims = _claims(answer.body)
    return f"{verb} {answer.status}" + (f": {claims or detail}" if claims or detail else "")


def _claims(body: Mapping[str, Any]) -> str:
    """Write ``probes[0].steps: -1, allowed 0`` for the first fields that no machine can have measured."""
    errors = body.get("errors")
    found = [each for each in errors if isinstance(each, Mapping)] if isinstance(errors, list) else []
    claims = [
        f"{each['field']}: {_value(each['claimed'])}, allowed {_value(each['allowed'])}"
        for each in found
        if {"field", "claimed", "allowed"} <= each.keys()
    ]
    count = max(_number(body.get("impossible_fields")) or 0, len(claims))  # the portal lists some of them
    more = f" and {count - _FIELDS_MOST} more" if claims and count > _FIELDS_MOST else ""
    return "; ".join(printable(each) for each in claims[:_FIELDS_MOST]) + more


def _value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _VALUE_MOST else f"{text[:_VALUE_MOST]}..."


@dataclass(frozen=True, slots=True)
class Announce:
    """Announce the run."""


@dataclass(frozen=True, slots=True)
class Events:
    """Send at most `most` events, from number `first` on; without any it is a heartbeat."""

    first: int
    most: int


@dataclass(frozen=True, slots=True)
class EventChannel:
    """How many events of one run have been sent, and when the portal is tried again."""

    is_open: bool = False
    next: int = 0
    url: str | None = None
    heartbeat_seconds: float = HEARTBEAT_SECONDS
    batch_most: int = EVENTS_MOST
    called_at: float = -math.inf
    not_before: float = -math.inf
    failures: int = 0
    reason: str | None = None
    is_refused: bool = False
    cancel_requested: bool = False


def next_call(
    channel: EventChannel, *, now: float, written: int, is_quiet: bool = False, hurry: bool = False
) -> Announce | Events | None:
    """Return what to send now, if anything; `hurry`: a run ends, so all events are due at once, and no heartbeat."""
    if channel.is_refused or (now < channel.not_before and not hurry):
        return None
    if not channel.is_open:
        return Announce()
    since = now - channel.called_at
    pause = channel.heartbeat_seconds if is_quiet else min(LIVE_SECONDS, channel.heartbeat_seconds)
    if channel.next < written and (hurry or since >= pause):
        return Events(channel.next, channel.batch_most)
    return Events(channel.next, 0) if not hurry and since >= channel.heartbeat_seconds else None


def after(
    channel: EventChannel, call: Announce | Events, answer: PortalAnswer, *, sent: int, now: float, jitter: float = 1.0
) -> EventChannel:
    """Return the channel after an answer to a call with `sent` events."""
    stands_at = _number(answer.body.get("next"))
    match meaning_of(answer), call:
        case Meaning.ACCEPTED, Announce() if stands_at is not None:
            url, heartbeat = answer.body.get("url"), answer.body.get("heartbeat_seconds")
            opened = replace(channel, is_open=True, url=printable(url) if isinstance(url, str) else None)
            return replace(_answered(opened, stands_at, now), heartbeat_seconds=_heartbeat(heartbeat))
        case Meaning.ACCEPTED, Events(first=first) if stands_at is not None and (stands_at > first or not sent):
            is_cancelled = answer.body.get("cancel_requested") is True
            return replace(_answered(channel, stands_at, now), cancel_requested=is_cancelled)
        case Meaning.ELSEWHERE, Events(first=first) if stands_at is not None and stands_at != first:
            return replace(_answered(channel, stands_at, now), failures=channel.failures + 1)
        case Meaning.UNKNOWN, Events():
            return replace(_failed(channel, answer, now, jitter), is_open=False)
        case Meaning.TOO_LARGE, Events() if sent > 1:
            return replace(channel, batch_most=sent // 2, called_at=now)
        case ((Meaning.ACCEPTED | Meaning.LATER | Meaning.ELSEWHERE), _):
            return _failed(channel, answer, now, jitter)
    return replace(channel, is_refused=True, reason=describe(answer), called_at=now)


def _answered(channel: EventChannel, stands_at: int, now: float) -> EventChannel:
    return replace(channel, next=stands_at, called_at=now, not_before=-math.inf, failures=0, reason=None)


def _failed(channel: EventChannel, answer: PortalAnswer, now: float, jitter: float) -> EventChannel:
    failures = channel.failures + 1
    wait = back_off_seconds(failures, answer.retry_after_seconds, jitter)
    return replace(channel, failures=failures, not_before=now + wait, called_at=now, reason=describe(answer))


def back_off_seconds(failures: int, retry_after_seconds: float | None = None, jitter: float = 1.0) -> float:
    """Return how long to wait after `failures` in a row; `jitter` (0.5 to 1) spreads many senders."""
    if retry_after_seconds is not None:
        return min(max(retry_after_seconds, 0.0), RETRY_AFTER_MOST)
    return float(min(2.0 ** min(failures - 1, 10), BACK_OFF_MOST) * jitter)


@dataclass(frozen=True, slots=True)
class Known:
    """A result that the portal has: the page of its run, and how many of its events have arrived."""

    url: str
    next: int


def known_results(answer: PortalAnswer) -> dict[str, Known]:
    """Return the results that the portal has, by their SHA-256."""
    found = answer.body.get("known")
    places = found.items() if isinstance(found, Mapping) else ()
    return {
        sha256: Known(printable(str(place.get("url") or "")), _number(place.get("next")) or 0)
        for sha256, place in places
        if isinstance(place, Mapping)
    }


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _heartbeat(value: Any) -> float:
    """Return the interval that the portal names, within reason."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return HEARTBEAT_SECONDS
    return min(max(float(value), HEARTBEAT_LEAST), HEARTBEAT_MOST)
