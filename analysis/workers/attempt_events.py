"""The events of one attempt, the engine's or a sender's: read, and kept in order until they are stored.

What waits has its number, so a write may be repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from analysis.runs import services
from analysis.runs.queue.progress import check_storable
from analysis.runs.services import LOG_LINES_PER_ATTEMPT, Lease, LogLine, Measured
from analysis.workers.attempt_files import is_cut_short
from analysis.workers.engine_events import check_event, log_line
from engine.describe.time_left import TimeLeft
from engine.describe.time_left.live_progress import seconds_of
from engine.facts.result import DeviceFacts, Probe
from engine.report.script_output import without_output


class AttemptEvents:
    """Phase, device and how the attempt ended; and what is still to be stored, without log lines beyond the limit."""

    def __init__(
        self,
        lease: Lease,
        *,
        facts: dict[str, Any] | None = None,
        probes_stored: int = 0,
        lines_stored: int = 0,
        time_left: TimeLeft | None = None,
        on_line: Callable[[LogLine], None] = lambda line: None,
        output_stays_on: str | None = None,
    ) -> None:
        """Facts and counts that are stored begin it.

        `output_stays_on`: the only host that keeps what a script printed; None where the portal may store it too.
        """
        self.phase = ""
        self.device: DeviceFacts | None = None
        self.result: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self.is_error_cut = False
        self._lease, self._on_line, self._output_stays_on = lease, on_line, output_stays_on
        self._time_left = time_left or TimeLeft()
        self._now: dict[str, dict[str, Any]] = {"environment": dict(facts or {}), "progress": {}}
        self._stored = dict(self._now)
        self._probes: list[Measured] = []
        self._measured = probes_stored
        self._lines: list[LogLine] = []
        self._lines_stored = lines_stored

    def take(self, events: Iterable[dict[str, Any]]) -> None:
        """Read these events; one that cannot be read is skipped, and the log says so. The time left is said once."""
        last = None
        for event in events:
            with self._skipping(f"a {event['event']} event"):
                self._take(self._storable(event))
                last = event
        if last is not None:
            with self._skipping("the time left"):
                self._note_progress(seconds_of(last))

    @contextmanager
    def _skipping(self, what: str) -> Iterator[None]:
        try:
            yield
        except (KeyError, TypeError, ValueError) as exc:
            self._log(LogLine("warning", f"Skipped {what} that the portal cannot read: {exc!r}"))

    @property
    def failure(self) -> tuple[str, str]:
        error = self.error or {}
        return str(error.get("code") or "engine_error")[:40], str(error.get("message") or "no message")

    def _storable(self, event: dict[str, Any]) -> dict[str, Any]:
        if self._output_stays_on is None:
            return event
        storable: dict[str, Any] = without_output(event, self._output_stays_on, names_place=True)
        self.is_error_cut |= event["event"] == "error" and storable != event
        return storable

    def _take(self, event: dict[str, Any]) -> None:
        check_event(event)
        probe = None
        match event["event"]:
            case "probe":
                probe = Probe.from_dict(event["probe"])
                check_storable(probe)
                self.add_probe(probe, is_carried=event.get("is_carried") is True)
            case "device" if event.get("environment"):
                self.device = DeviceFacts.from_dict(event["device"])
                self.add_facts(device=event["device"], environment=dict(event["environment"]))
            case "estimate" if "device" in self._now["environment"]:
                self.add_facts(estimate=dict(event["estimate"]))
            case "phase":
                self.phase = str(event["phase"])
            case "result" if not is_cut_short(event["result"]):
                self.result = dict(event["result"])
            case "error":
                self.error = dict(event["error"])
        self._time_left.take(event, probe)
        if line := log_line(event):
            self._log(line)

    def _note_progress(self, now: float) -> None:
        """Note the progress, with the moment at which the run is expected to end, by this host's clock."""
        before = self._time_left.said
        ends_at = (self._now["progress"] or self._time_left.progress).get("ends_at")
        self._time_left.say(now)
        left = self._time_left.left(now)
        if left is not None and (ends_at is None or self._time_left.said != before):
            ends_at = round(time.time() + left, 1)
        self._now["progress"] = {**self._time_left.progress, **({} if ends_at is None else {"ends_at": ends_at})}

    def _log(self, line: LogLine) -> None:
        self.add_log_line(line)
        self._on_line(line)

    def add_facts(self, **facts: Any) -> None:
        """Add facts about the attempt (device, environment, estimate). All are stored again, as a whole."""
        self._now["environment"] = self._now["environment"] | facts

    def add_probe(self, probe: Probe, *, is_carried: bool) -> None:
        self._measured += 1
        self._probes.append(Measured(self._measured, probe, is_carried))

    def add_log_line(self, line: LogLine) -> None:
        if self._lines_stored + len(self._lines) <= LOG_LINES_PER_ATTEMPT:
            self._lines.append(line)

    def store(self) -> bool:
        """Store what waits. False: the lease is lost. Raises the database's errors, and then nothing is dropped."""
        now = dict(self._now)
        changed = {name: value for name, value in now.items() if value != self._stored[name]}
        if changed and not services.attempt_set(**self._lease, **changed):
            return False
        self._stored = now
        probes, lines = list(self._probes), list(self._lines)
        if probes and not services.measurements_add(**self._lease, measured=probes):
            return False
        del self._probes[: len(probes)]
        if lines and not services.log_add(**self._lease, lines=lines, first_sequence=self._lines_stored + 1):
            return False
        self._lines_stored += len(lines)
        del self._lines[: len(lines)]
        return True
