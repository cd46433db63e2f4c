"""Reports one run while it goes on, from a separate thread. No failure of it changes the run.

The run only appends its events to a file. The thread reads it once a second, and sends new events every two seconds;
while speeds are measured only with the heartbeat, so that it is idle meanwhile.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..errors import EngineError
from ..facts.result_file import Document, write_content
from ..machine.execution import event_of
from ..text.printable import printable
from .address import TOKEN_VARIABLE, Address
from .files import EVENTS_SUFFIX, PRIVATE_FILE, RESULT_SUFFIX, EventReader, EventWriter, events_body
from .http import Portal
from .protocol import (
    QUIET_PHASES,
    RESULT_BYTES_MOST,
    STOPPED,
    Announce,
    EventChannel,
    Events,
    Meaning,
    PortalAnswer,
    after,
    describe,
    error_of,
    meaning_of,
    next_call,
)
from .script_output import without_output

LOOK_SECONDS = 1.0
CANCELLED = "cancelled in the portal"
END_SECONDS, STOPPED_SECONDS = 10.0, 3.0
_TRIES_AT_END, _PAUSE_AT_END_SECONDS = 3, 0.5
_LINE_MOST = 1_000


def send(portal: Portal, call: Announce | Events, reader: EventReader) -> tuple[PortalAnswer, int]:
    """Carry out a call; return the answer, and how many events were sent."""
    if isinstance(call, Announce):
        return portal.post("/api/v1/reports/", json.dumps(reader.announcement).encode()), 0
    lines = reader.lines(call.first, call.most)
    path = f"/api/v1/reports/{reader.announcement['run_key']}/events/"
    return portal.post(path, events_body(call.first, lines)), len(lines)


def send_result(portal: Portal, content: bytes) -> PortalAnswer:
    """Send a result file unchanged; its digest identifies the document, however often it is sent.

    A file above the portal's limit is not sent: the server would close the connection, as if it were unreachable.
    """
    if len(content) > RESULT_BYTES_MOST:
        return PortalAnswer(413, {"detail": f"it has {len(content):,} bytes, a portal takes {RESULT_BYTES_MOST:,}"})
    return portal.post("/api/v1/results/", content, key=sha256(content).hexdigest())


def send_query(portal: Portal, digests: Sequence[str]) -> PortalAnswer:
    """Query which of these results the portal has, identified by their SHA-256."""
    return portal.post("/api/v1/results/known/", json.dumps({"sha256": list(digests)}).encode())


def refusal_of(portal: Portal) -> str | None:
    """Return why the portal refuses the token; None if the token is accepted, or no portal answers."""
    answer = send_query(portal, [sha256(b"").hexdigest()])
    return describe(answer) if answer.status in (401, 403) and answer.body else None


class Reporter:
    """A run written to its folder and sent from there as it is; a script's prints only with `sends_output`."""

    def __init__(
        self,
        address: Address,
        folder: Path,
        announcement: Mapping[str, Any],
        *,
        sync_command: str,
        sends_output: bool = False,
    ) -> None:
        self.folder, self._announcement, self._sync_command = folder, announcement, sync_command
        self._sends_output = sends_output
        self._portal = Portal(address)
        self._reason = None if address.token else f"{TOKEN_VARIABLE} is not set"
        self._channel = EventChannel()
        self._writer: EventWriter | None = None
        self._has_result = self._is_quiet = self._is_cancelled = False
        self._sent_url: str | None = None
        self._ended = threading.Event()
        self._end_by = float("inf")
        self._thread = threading.Thread(target=self._send_all, name="report", daemon=True)

    def __enter__(self) -> Self:
        try:
            self._writer = EventWriter(self._file(EVENTS_SUFFIX), self._announcement)
        except OSError as exc:
            self._say(f"not reported: {self.folder} cannot be written: {exc.strerror}")
            return self
        if self._reason is None:
            self._thread.start()
        return self

    def emit(self, event: dict[str, Any]) -> None:
        """Store an event. Raises KeyboardInterrupt, like Ctrl-C, once the run is cancelled in the portal."""
        if event["event"] == "phase":
            self._is_quiet = event["phase"] in QUIET_PHASES
        if event["event"] != "result":
            self._write(event)
        if self._channel.cancel_requested and not self._is_cancelled:
            self._is_cancelled = True
            self._say(CANCELLED)
            raise KeyboardInterrupt

    def keep(self, exit_status: int, result: Document) -> Path | None:
        """Write the result to the folder of unsent results; return its file, or None if it cannot be written."""
        try:
            content = {"exit_status": exit_status, "result": self._to_send(result.to_dict())}
            write_content(self._file(RESULT_SUFFIX), content, mode=PRIVATE_FILE)
        except OSError as exc:
            self._say(f"the result could not be stored in {self.folder}: {exc.strerror}")
            return None
        self._has_result = True
        return self._file(RESULT_SUFFIX)

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if error is not None:
            self._write_end(error)
        is_over = self._has_result or isinstance(error, EngineError)
        self._end_by = time.monotonic() + (END_SECONDS if is_over else STOPPED_SECONDS)
        self._ended.set()
        if self._thread.ident is not None:
            try:
                self._thread.join(self._end_by - time.monotonic())
            except KeyboardInterrupt:  # the run itself has ended: only the rest of its report is abandoned
                self._reason = self._reason or "interrupted"
            if self._thread.is_alive():
                self._reason = self._reason or self._channel.reason or "the portal is slow"
        if self._writer is not None:
            self._writer.close()
            self._say_outcome()

    def _file(self, suffix: str) -> Path:
        return self.folder / f"{self._announcement['run_key']}{suffix}"

    def _write(self, event: Mapping[str, Any]) -> None:
        if self._writer is None:
            return
        try:
            self._writer.write(self._to_send(event))
        except OSError as exc:
            self._say(f"events of the run are no longer stored: {exc.strerror}")

    def _to_send(self, content: Any) -> Any:
        return content if self._sends_output else without_output(content, self._announcement["host"])

    def _write_end(self, ended_by: BaseException) -> None:
        """Write how the run ended; without it the portal would wait for a timeout."""
        if self._writer is None:
            return
        error = error_of(ended_by)
        if self._is_cancelled and error["code"] == STOPPED:
            error |= {"code": "cancelled", "message": CANCELLED}
        elif self._has_result and error["code"] == STOPPED:
            return  # stopped behind its end: its result says more
        self._write(event_of("error", time.monotonic() - self._writer.began, error=error))

    def _say_outcome(self) -> None:
        assert self._writer is not None
        has_all_events = self._channel.is_open and self._channel.next >= self._writer.written
        if self._sent_url or (has_all_events and not self._has_result):
            self._say(f"reported: {self._sent_url or self._channel.url}")
            return
        reason = self._reason or self._channel.reason or "not all of it was taken"
        self._say(f"kept in {self.folder}: `{self._sync_command}` sends it later ({reason})")

    def _say(self, text: str) -> None:
        with suppress(OSError, ValueError):  # a closed output must not change how the run ends
            sys.stderr.write(f"{printable(text, _LINE_MOST)}\n")
            sys.stderr.flush()

    # the methods below run in the thread

    def _send_all(self) -> None:
        reader = EventReader(self._file(EVENTS_SUFFIX))
        while not self._ended.wait(LOOK_SECONDS):
            self._send_next(reader, hurry=False)
        tries = 0
        while tries < _TRIES_AT_END and time.monotonic() < self._end_by:
            if not self._send_next(reader, hurry=True):
                break
            if self._channel.failures:
                tries += 1
                time.sleep(_PAUSE_AT_END_SECONDS)
        if self._has_result and time.monotonic() < self._end_by:
            self._send_result()
        reader.close()

    def _send_next(self, reader: EventReader, *, hurry: bool) -> bool:
        assert self._writer is not None
        now, written = time.monotonic(), self._writer.written
        call = next_call(self._channel, now=now, written=written, is_quiet=self._is_quiet, hurry=hurry)
        if call is None:
            return False
        answer, sent = send(self._portal, call, reader)
        jitter = random.uniform(0.5, 1.0)  # noqa: S311  (spreads senders)
        self._channel = after(self._channel, call, answer, sent=sent, now=time.monotonic(), jitter=jitter)
        return True

    def _send_result(self) -> None:
        content = self._file(RESULT_SUFFIX).read_bytes()
        for _ in range(_TRIES_AT_END):
            answer = send_result(self._portal, content)
            if meaning_of(answer) is Meaning.ACCEPTED:
                self._sent_url = printable(answer.body.get("url") or self._portal.url)
                return
            self._reason = describe(answer)
            if meaning_of(answer) is not Meaning.LATER or time.monotonic() > self._end_by:
                return
            time.sleep(_PAUSE_AT_END_SECONDS)
