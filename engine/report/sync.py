"""Sends the runs of a folder that the portal does not have. May be repeated: each document is stored once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from hashlib import sha256
from pathlib import Path

from ..errors import SpecError
from ..facts.result_file import result_in
from ..text.printable import printable
from .files import EVENTS_SUFFIX, PARTIAL_SUFFIX, RESULT_SUFFIX, EventReader
from .http import Portal
from .protocol import (
    DIGESTS_MOST,
    EventChannel,
    Known,
    Meaning,
    PortalAnswer,
    after,
    back_off_seconds,
    describe,
    known_results,
    meaning_of,
    next_call,
)
from .reporter import send, send_query, send_result
from .script_output import quotes_script, without_output

TRIES = 5
_RESULT_BYTES_MOST = 64 * 1024 * 1024


class SyncState(StrEnum):
    SENT = "sent"
    KNOWN = "known"
    REFUSED = "refused"
    AWAY = "not reachable"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class SyncOutcome:
    path: Path
    state: SyncState
    text: str = ""


@dataclass
class Sync:
    """One pass over folders. An unreachable portal is not tried again for each document."""

    portal: Portal
    is_away: str | None = None

    def folders(self, folders: Sequence[Path]) -> Iterator[SyncOutcome]:
        """Send all files of the folders, the oldest of each first; a folder may also be a single file."""
        files: list[Path] = []
        for folder in folders:
            inside = [folder] if folder.is_file() else [path for path in folder.iterdir() if path.is_file()]
            files += sorted(inside, key=lambda path: (path.stat().st_mtime, path.name))
        results = {path for path in files if path.suffix == RESULT_SUFFIX}
        known = self._known(results)
        for path in files:
            if path.name.endswith(EVENTS_SUFFIX):
                result = path.with_name(path.name.removesuffix(EVENTS_SUFFIX) + RESULT_SUFFIX)
                outcome = self._events(path, known.get(result))
                if result not in results or outcome.state is SyncState.SKIPPED:
                    yield outcome  # a run with a result is listed by that
        for path in files:
            if path in known:
                yield SyncOutcome(path, SyncState.KNOWN, known[path].url)
            elif path.name.endswith(PARTIAL_SUFFIX):
                yield SyncOutcome(path, SyncState.SKIPPED, "it is half-written")
            elif path.suffix == RESULT_SUFFIX:
                yield self._result(path)
            elif not path.name.endswith(EVENTS_SUFFIX):
                yield SyncOutcome(path, SyncState.SKIPPED, "it is no file of a run")

    def _known(self, paths: Collection[Path]) -> dict[Path, Known]:
        """Find out which results the portal has, so that an interrupted `sync` continues."""
        digests = {}
        for path in paths:
            with suppress(OSError, ValueError):  # a file that `_result` refuses
                digests[path] = sha256(_result_of(path)).hexdigest()
        queried, known = list(digests.values()), dict[str, Known]()
        for first in range(0, len(queried), DIGESTS_MOST):
            some = queried[first : first + DIGESTS_MOST]
            answer = self._answer(partial(send_query, self.portal, some))
            if answer is None or meaning_of(answer) is not Meaning.ACCEPTED:
                break  # unreachable, or an old portal: then each document is sent, and the answer shows if it is known
            known |= known_results(answer)
        return {path: known[digest] for path, digest in digests.items() if digest in known}

    def _events(self, path: Path, known: Known | None) -> SyncOutcome:
        """Send the events of a run that the portal does not have. `known`: the portal has the run's result."""
        try:
            reader = EventReader(path)
        except (OSError, ValueError) as exc:
            return SyncOutcome(path, SyncState.SKIPPED, _why(exc))
        try:
            written, channel = reader.count(), EventChannel()
            if known is not None and known.next >= written:
                return SyncOutcome(path, SyncState.KNOWN, known.url)
            known_from = None
            while not self.is_away and (call := next_call(channel, now=0.0, written=written, hurry=True)) is not None:
                answer, sent = send(self.portal, call, reader)
                channel = after(channel, call, answer, sent=sent, now=0.0)
                known_from = channel.next if known_from is None and channel.is_open else known_from
                if channel.failures:
                    self._pause(channel.failures, channel.not_before, channel.reason)
            if channel.is_refused:
                return SyncOutcome(path, SyncState.REFUSED, channel.reason or "")
            if self.is_away:
                return SyncOutcome(path, SyncState.AWAY, self.is_away)
            end = "" if reader.is_failed() else ", without an end: it was stopped, or goes on"
            state = SyncState.KNOWN if known_from is not None and known_from >= written else SyncState.SENT
            return SyncOutcome(path, state, f"{channel.url or 'its events'}{end}")
        finally:
            reader.close()

    def _result(self, path: Path) -> SyncOutcome:
        try:
            content = _result_of(path)
        except (OSError, ValueError) as exc:
            return SyncOutcome(path, SyncState.SKIPPED, _why(exc))
        answer = self._answer(partial(send_result, self.portal, content))
        if answer is None:
            return SyncOutcome(path, SyncState.AWAY, self.is_away or "")
        if meaning_of(answer) is not Meaning.ACCEPTED:
            return SyncOutcome(path, SyncState.REFUSED, describe(answer))
        state = SyncState.SENT if answer.status == 201 else SyncState.KNOWN
        return SyncOutcome(path, state, printable(answer.body.get("url") or ""))

    def _answer(self, call: Callable[[], PortalAnswer]) -> PortalAnswer | None:
        """Call until the portal answers anything but "later"; None once it counts as unreachable."""
        failures = 0
        while not self.is_away:
            answer = call()
            if meaning_of(answer) is not Meaning.LATER:
                return answer
            failures += 1
            self._pause(failures, back_off_seconds(failures, answer.retry_after_seconds), describe(answer))
        return None

    def _pause(self, failures: int, seconds: float, reason: str | None) -> None:
        """Wait before another try; after TRIES in a row the portal counts as unreachable."""
        if failures >= TRIES:
            self.is_away = reason or "no answer"
        else:
            time.sleep(seconds)


def is_all_there(outcomes: Sequence[SyncOutcome]) -> bool:
    """Whether the portal has every document; other files do not count."""
    return not any(outcome.state in (SyncState.REFUSED, SyncState.AWAY) for outcome in outcomes)


def _result_of(path: Path) -> bytes:
    """Return the bytes of a result file without what a script printed. Raises ValueError."""
    if path.stat().st_size > _RESULT_BYTES_MOST:
        raise ValueError("it is larger than any result")
    content = path.read_bytes()
    try:
        document = json.loads(content)
        result = result_in(document, "result")
    except (ValueError, RecursionError) as exc:
        raise ValueError("it is half-written, or no JSON") from exc
    except SpecError:
        result = {}
    environment = result.get("environment")
    if not {"spec", "device"} <= result.keys() or not isinstance(environment, dict):
        raise ValueError("it is no result of a run")
    if not quotes_script(content) or path.name == f"{environment.get('run_key')}{RESULT_SUFFIX}":
        return content  # the folder of a reported run holds only what may be sent
    return json.dumps(without_output(document, printable(environment.get("host") or "its host"))).encode()


def _why(exc: Exception) -> str:
    return (exc.strerror or str(exc)) if isinstance(exc, OSError) else str(exc)
