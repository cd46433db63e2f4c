"""Sends what a folder holds and the portal does not have. Any number of times: each document is there once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from hashlib import file_digest
from pathlib import Path

from ..errors import SpecError
from ..result_file import result_in
from .files import EVENTS_SUFFIX, PARTIAL_SUFFIX, RESULT_SUFFIX, EventReader
from .http import Portal
from .protocol import (
    DIGESTS_MOST,
    Answer,
    Channel,
    Known,
    Meaning,
    after,
    back_off_seconds,
    describe,
    known_results,
    meaning_of,
    next_call,
)
from .reporter import send, send_query, send_result

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

    def folders(self, folders: Sequence[Path]) -> Iterator[Outcome]:
        """Send all that folders hold, of each the oldest first; one may also be a single file."""
        files = [path for folder in folders for path in _files(folder)]
        results = {path for path in files if path.suffix == RESULT_SUFFIX}
        known = self._known(results)
        for path in files:
            if path.name.endswith(EVENTS_SUFFIX):
                result = path.with_name(path.name.removesuffix(EVENTS_SUFFIX) + RESULT_SUFFIX)
                outcome = self._events(path, known.get(result))
                if result not in results or outcome.state is State.SKIPPED:
                    yield outcome  # else its result is the document
        for path in files:
            if path in known:
                yield Outcome(path, State.KNOWN, known[path].url)
            elif path.name.endswith(PARTIAL_SUFFIX):
                yield Outcome(path, State.SKIPPED, "it is half-written")
            elif path.suffix == RESULT_SUFFIX:
                yield self._result(path)
            elif not path.name.endswith(EVENTS_SUFFIX):
                yield Outcome(path, State.SKIPPED, "it is no file of a run")

    def _known(self, paths: Collection[Path]) -> dict[Path, Known]:
        """Find out which results the portal has, so that a `sync` that was ended goes on where it was."""
        digests = {path: digest for path in paths if (digest := _digest(path)) is not None}
        queried, known = list(digests.values()), dict[str, Known]()
        for first in range(0, len(queried), DIGESTS_MOST):
            some = queried[first : first + DIGESTS_MOST]
            answer = self._answer(partial(send_query, self.portal, some))
            if answer is None or meaning_of(answer) is not Meaning.ACCEPTED:
                break  # away; or a portal that cannot say: then each document is sent, and known by its answer
            known |= known_results(answer)
        return {path: known[digest] for path, digest in digests.items() if digest in known}

    def _events(self, path: Path, known: Known | None) -> Outcome:
        """Bring the events of a run that the portal does not have. `known`: it has the run's result."""
        try:
            reader = EventReader(path)
        except (OSError, ValueError) as exc:
            return Outcome(path, State.SKIPPED, _why(exc))
        try:
            written, channel = reader.count(), Channel()
            if known is not None and known.next >= written:
                return Outcome(path, State.KNOWN, known.url)
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
        answer = self._answer(partial(send_result, self.portal, content))
        if answer is None:
            return Outcome(path, State.AWAY, self.is_away or "")
        if meaning_of(answer) is not Meaning.ACCEPTED:
            return Outcome(path, State.REFUSED, describe(answer))
        state = State.SENT if answer.status == 201 else State.KNOWN
        return Outcome(path, state, str(answer.body.get("url") or ""))

    def _answer(self, call: Callable[[], Answer]) -> Answer | None:
        """Call until the portal has an answer other than "later"; None once it counts as away."""
        failures = 0
        while not self.is_away:
            answer = call()
            if meaning_of(answer) is not Meaning.LATER:
                return answer
            failures += 1
            self._pause(failures, back_off_seconds(failures, answer.retry_after_seconds), describe(answer))
        return None

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
        result = result_in(json.loads(content), "result")
    except (ValueError, RecursionError) as exc:
        raise ValueError("it is half-written, or no JSON") from exc
    except SpecError:
        result = {}
    if not {"spec", "device", "environment"} <= result.keys():
        raise ValueError("it is no result of a run")
    return content


def _digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None where it cannot be read, which `_result` says."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _files(folder: Path) -> list[Path]:
    return [folder] if folder.is_file() else sorted((p for p in folder.iterdir() if p.is_file()), key=_age)


def _age(path: Path) -> tuple[float, str]:
    return path.stat().st_mtime, path.name


def _why(exc: Exception) -> str:
    return (exc.strerror or str(exc)) if isinstance(exc, OSError) else str(exc)
