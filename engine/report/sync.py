"""Sends what a folder holds and the portal does not have. Any number of times: each document is there once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from .files import EVENTS_SUFFIX, PARTIAL_SUFFIX, RESULT_SUFFIX, EventReader
from .http import Portal
from .protocol import Channel, Meaning, after, back_off_seconds, describe, meaning_of, next_call
from .reporter import send, send_result

TRIES = 5
_RESULT_BYTES_MOST = 64 * 1024 * 1024


class State(StrEnum):
    """What became of one document."""

    SENT = "sent"
    KNOWN = "known"
    REFUSED = "refused"
    AWAY = "not reachable"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file, with its reason or its address."""

    path: Path
    state: State
    text: str = ""


@dataclass
class Sync:
    """One pass over folders. A portal that stays away is not tried anew for each document."""

    portal: Portal
    is_away: str | None = None

    def folder(self, folder: Path) -> Iterator[Outcome]:
        """Send all that one folder holds, the oldest first; `folder` may also be a single file."""
        files = [folder] if folder.is_file() else sorted((p for p in folder.iterdir() if p.is_file()), key=_age)
        results = {p.name.removesuffix(RESULT_SUFFIX) for p in files if p.suffix == RESULT_SUFFIX}
        for path in files:
            if path.name.endswith(EVENTS_SUFFIX):
                outcome = self._events(path)
                if path.name.removesuffix(EVENTS_SUFFIX) not in results or outcome.state is State.SKIPPED:
                    yield outcome  # else its result is the document
        for path in files:
            if path.name.endswith(PARTIAL_SUFFIX):
                yield Outcome(path, State.SKIPPED, "it is half-written")
            elif path.suffix == RESULT_SUFFIX:
                yield self._result(path)
            elif not path.name.endswith(EVENTS_SUFFIX):
                yield Outcome(path, State.SKIPPED, "it is no file of a run")

    def _events(self, path: Path) -> Outcome:
        """Bring the events of a run that the portal does not have."""
        try:
            reader = EventReader(path)
        except (OSError, ValueError) as exc:
            return Outcome(path, State.SKIPPED, _why(exc))
        try:
            written, channel = reader.count(), Channel()
            known_from = None
            while not self.is_away and (call := next_call(channel, now=0.0, written=written, hurry=True)) is not None:
                answer, sent = send(self.portal, call, reader)
                channel = after(channel, call, answer, sent=sent, now=0.0)
                known_from = channel.next if known_from is None and channel.is_open else known_from
                if channel.failures:
                    self._pause(channel.failures, channel.not_before, channel.reason)
            if channel.is_refused:
                return Outcome(path, State.REFUSED, channel.reason or "")
            if self.is_away:
                return Outcome(path, State.AWAY, self.is_away)
            end = "" if reader.is_failed() else ", without an end: it was stopped, or goes on"
            state = State.KNOWN if known_from is not None and known_from >= written else State.SENT
            return Outcome(path, state, f"{channel.url or 'its events'}{end}")
        finally:
            reader.close()

    def _result(self, path: Path) -> Outcome:
        try:
            content = _result_of(path)
        except (OSError, ValueError) as exc:
            return Outcome(path, State.SKIPPED, _why(exc))
        failures = 0
        while not self.is_away:
            answer = send_result(self.portal, content)
            match meaning_of(answer):
                case Meaning.ACCEPTED:
                    state = State.SENT if answer.status == 201 else State.KNOWN
                    return Outcome(path, state, str(answer.body.get("url") or ""))
                case Meaning.LATER:
                    failures += 1
                    self._pause(failures, back_off_seconds(failures, answer.retry_after_seconds), describe(answer))
                case _:
                    return Outcome(path, State.REFUSED, describe(answer))
        return Outcome(path, State.AWAY, self.is_away or "")

    def _pause(self, failures: int, seconds: float, reason: str | None) -> None:
        """Wait before another try; after so many in a row the portal counts as away."""
        if failures >= TRIES:
            self.is_away = reason or "no answer"
        else:
            time.sleep(seconds)


def is_all_there(outcomes: Sequence[Outcome]) -> bool:
    """Whether the portal has every document; what is no document does not count."""
    return not any(outcome.state in (State.REFUSED, State.AWAY) for outcome in outcomes)


def _result_of(path: Path) -> bytes:
    """Return the bytes of a result file. Raises ValueError for anything else."""
    if path.stat().st_size > _RESULT_BYTES_MOST:
        raise ValueError("it is larger than any result")
    content = path.read_bytes()
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise ValueError("it is half-written, or no JSON") from exc
    result = document.get("result", document) if isinstance(document, dict) else None
    if not isinstance(result, dict) or not {"spec", "device", "environment"} <= result.keys():
        raise ValueError("it is no result of a run")
    return content


def _age(path: Path) -> tuple[float, str]:
    return path.stat().st_mtime, path.name


def _why(exc: Exception) -> str:
    return (exc.strerror or str(exc)) if isinstance(exc, OSError) else str(exc)
