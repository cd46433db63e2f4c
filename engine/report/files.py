"""The files of a reported run in its folder, readable only by their owner: `RUN_KEY.events.jsonl`, `RUN_KEY.json`.

The first line of the events is the announcement of the run; each other line is an event, complete once it ends with a
line feed. They are read from the file when they are sent, so an unreachable portal costs no memory.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ..machine.execution import event_of
from .protocol import BATCH_BYTES_MOST, PROBES_MOST, RUN_KEY, json_object

FOLDER, FOLDER_VARIABLE = "memorymark-runs", "MEMORYMARK_RUNS_DIR"
EVENTS_SUFFIX, RESULT_SUFFIX, PARTIAL_SUFFIX = ".events.jsonl", ".json", ".partial"
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
_MEMBERS = frozenset({"run_key", "kind", "host", "spec", "engine_version"})


def folder_of(given: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the folder in which runs are stored: the given one, or one below the current folder."""
    return given or Path(environ.get(FOLDER_VARIABLE, "").strip() or FOLDER)


class EventWriter:
    def __init__(self, path: Path, announcement: Mapping[str, Any]) -> None:
        path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, PRIVATE_FILE)
        self._file = os.fdopen(descriptor, "wb")
        self.began, self.written = time.monotonic(), 0
        self._is_broken = False
        self._append(announcement)

    def write(self, event: Mapping[str, Any]) -> None:
        """Append an event. Raises OSError where it cannot be written; then all later events are left out as well."""
        if self._is_broken:
            return
        try:
            self._append(event)
        except OSError:
            self._is_broken = True
            raise
        self.written += 1

    def _append(self, content: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(content).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class EventReader:
    """Reads events by number, from 0, without an incomplete last line. Raises ValueError for any other file."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("rb")
        self._number = -1
        self.announcement = json_object(self._next() or b"")
        if self.announcement.keys() != _MEMBERS or not RUN_KEY.fullmatch(str(self.announcement["run_key"])):
            self.close()
            raise ValueError("its first line announces no run")

    def lines(self, first: int, most: int, bytes_most: int = BATCH_BYTES_MOST) -> list[bytes]:
        """Return the lines of at most `most` events from `first` on, as far as they fit into one call."""
        if first < self._number:
            self._file.seek(0)
            self._number = -1
        while self._number < first and self._next() is not None:
            pass
        lines: list[bytes] = []
        probes_left = PROBES_MOST
        while len(lines) < most and (line := self._next()) is not None:
            if len(line) >= bytes_most:
                text = f"an event of {len(line)} bytes is left out here: more than a call may have"
                line = json.dumps(event_of("log", level="warning", message=text)).encode()
            bytes_most -= len(line) + 1
            probes_left -= _is_event(line, "probe")
            if lines and (bytes_most < 0 or probes_left < 0):
                break
            lines.append(line)
        return lines

    def count(self) -> int:
        while self._next() is not None:
            pass
        return self._number

    def is_failed(self) -> bool:
        """Whether an error ended the run."""
        return any(_is_event(line, "error") for line in self.lines(max(self.count() - 1, 0), 1))

    def close(self) -> None:
        self._file.close()

    def _next(self) -> bytes | None:
        """Return the next complete line; None at the end of the file, which may still grow."""
        start = self._file.tell()
        line = self._file.readline()
        if not line.endswith(b"\n"):
            self._file.seek(start)
            return None
        self._number += 1
        return line[:-1]


def events_body(first: int, lines: list[bytes]) -> bytes:
    return b'{"first": %d, "events": [%s]}' % (first, b", ".join(lines))


def _is_event(line: bytes, name: str) -> bool:
    return json_object(line).get("event") == name
