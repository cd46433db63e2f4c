"""What an engine said and the database has not yet: kept in order, stored as soon as that is possible.

Every write carries its own number, so that one whose confirmation was lost can be repeated without harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analysis.runs import services
from analysis.runs.services import LOG_LINES_PER_ATTEMPT, Lease, LogLine
from engine.result import Probe


@dataclass(frozen=True, slots=True)
class _Measured:
    """One probe, with the number it is stored under."""

    sequence: int
    probe: Probe
    is_carried: bool


class EventBuffer:
    """Of one attempt. Bounded: log lines that the log has no room for are not kept here, either."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._facts: dict[str, Any] = {}
        self._facts_wait = False
        self._probes: list[_Measured] = []
        self._measured = 0
        self._lines: list[LogLine] = []
        self._lines_stored = 0

    @property
    def knows_device(self) -> bool:
        return "device" in self._facts

    def learn(self, **facts: Any) -> None:
        """What the attempt measures with, and what it expected: stored as a whole, each time there is more."""
        self._facts |= facts
        self._facts_wait = True

    def measured(self, probe: Probe, *, is_carried: bool) -> None:
        self._measured += 1
        self._probes.append(_Measured(self._measured, probe, is_carried))

    def say(self, line: LogLine) -> None:
        if self._lines_stored + len(self._lines) <= LOG_LINES_PER_ATTEMPT:
            self._lines.append(line)

    def store(self) -> bool:
        """Write what waits. False: the lease is lost. Raises what the database raises; then all of it still waits."""
        if self._facts_wait:
            if not services.environment_set(**self._lease, environment=self._facts):
                return False
            self._facts_wait = False
        while self._probes:
            first = self._probes[0]
            number, is_carried = first.sequence, first.is_carried
            if not services.measurement_add(**self._lease, probe=first.probe, sequence=number, is_carried=is_carried):
                return False
            self._probes.pop(0)
        return self._store_lines()

    def _store_lines(self) -> bool:
        lines = list(self._lines)
        if lines and not services.log_add(**self._lease, lines=lines, first_sequence=self._lines_stored + 1):
            return False
        self._lines_stored += len(lines)
        del self._lines[: len(lines)]
        return True
