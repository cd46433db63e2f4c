"""Reads the events of one attempt, in their order: its phase, progress, probes, log, and how it ended.

The supervisor reads them from the engine that it started, the API from a sender on another machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analysis.runs.progress import check_storable
from analysis.runs.services import LogLine
from analysis.workers.engine_events import log_line, progress_after
from analysis.workers.event_buffer import EventBuffer
from engine.result import DeviceFacts, Probe


class EventIntake:
    """What the events of an attempt said so far. What has to be stored waits in the buffer."""

    def __init__(
        self,
        buffer: EventBuffer,
        *,
        progress: dict[str, Any] | None = None,
        on_line: Callable[[LogLine], None] = lambda line: None,
    ) -> None:
        self.phase = ""
        self.device: DeviceFacts | None = None
        self.result: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self._buffer, self._on_line = buffer, on_line
        self._progress = dict(progress or {})

    def take(self, event: dict[str, Any]) -> None:
        """Read one event; one that cannot be read is skipped, and the log says so."""
        try:
            self._take(event)
        except (KeyError, TypeError, ValueError) as exc:
            self._log(LogLine("warning", f"Skipped a {event['event']} event that the portal cannot read: {exc!r}"))

    @property
    def failure(self) -> tuple[str, str]:
        """Return code and message of the error that the engine reported."""
        error = self.error or {}
        return str(error.get("code") or "engine_error")[:40], str(error.get("message") or "no message")

    def _take(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "probe":
                probe = Probe.from_dict(event["probe"])
                check_storable(probe)
                self._buffer.add_probe(probe, is_carried=event.get("is_carried") is True)
            case "device" if event.get("environment"):
                self.device = DeviceFacts.from_dict(event["device"])
                self._buffer.add_facts(device=event["device"], environment=dict(event["environment"]))
            case "estimate" if self._buffer.knows_device:
                self._buffer.add_facts(estimate=dict(event["estimate"]))
            case "phase":
                self.phase = str(event["phase"])
            case "result":
                self.result = dict(event["result"])
            case "error":
                self.error = dict(event["error"])
        self._progress = progress_after(self._progress, event)
        self._buffer.note_progress(self._progress)
        if line := log_line(event):
            self._log(line)

    def _log(self, line: LogLine) -> None:
        self._buffer.add_log_line(line)
        self._on_line(line)
