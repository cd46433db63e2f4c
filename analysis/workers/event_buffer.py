"""A buffer of the engine's events, in order, until they are stored; a write has its number, so it may be repeated."""

from __future__ import annotations

from typing import Any

from analysis.runs import services
from analysis.runs.services import LOG_LINES_PER_ATTEMPT, Lease, LogLine, Measured
from engine.results.result import Probe


class EventBuffer:
    """The events of one attempt, without log lines beyond the limit; facts and counts that are stored begin it."""

    def __init__(
        self, lease: Lease, *, facts: dict[str, Any] | None = None, probes_stored: int = 0, lines_stored: int = 0
    ) -> None:
        self._lease = lease
        self._facts: dict[str, Any] = dict(facts or {})
        self._progress: dict[str, Any] = {}
        self._stored = {"environment": dict(self._facts), "progress": self._progress}
        self._probes: list[Measured] = []
        self._measured = probes_stored
        self._lines: list[LogLine] = []
        self._lines_stored = lines_stored

    @property
    def knows_device(self) -> bool:
        return "device" in self._facts

    def add_facts(self, **facts: Any) -> None:
        """Add facts about the attempt (device, environment, estimate). All are stored again, as a whole."""
        self._facts = self._facts | facts

    def note_progress(self, progress: dict[str, Any]) -> None:
        """Take over where the engine is now. Only the latest is stored."""
        self._progress = progress

    def add_probe(self, probe: Probe, *, is_carried: bool) -> None:
        self._measured += 1
        self._probes.append(Measured(self._measured, probe, is_carried))

    def add_log_line(self, line: LogLine) -> None:
        if self._lines_stored + len(self._lines) <= LOG_LINES_PER_ATTEMPT:
            self._lines.append(line)

    def store(self) -> bool:
        """Store what waits. False: the lease is lost. Raises the database's errors, and then nothing is dropped."""
        now = {"environment": self._facts, "progress": self._progress}
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
