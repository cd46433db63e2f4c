"""One execution of a run: its clock, deadline and phases, and the events by which a run of any kind says them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import TimeIsUp
from ..facts.result_file import Document
from ..settings.spec import SCHEMA

Emit = Callable[[dict[str, Any]], None]
"""Called with each event of a run, in order."""
Result = TypeVar("Result", bound=Document)
T = TypeVar("T")


def event_of(name: str, seconds: float = 0.0, **content: Any) -> dict[str, Any]:
    """Return an event, `seconds` after the start; 0 for one outside the run's own time."""
    return {"event": name, "seconds": round(seconds, 3), **content}


class Execution:
    """A run in progress. A phase is a part of it that pages list, a stage what goes on within one."""

    def __init__(self, emit: Emit, time_budget_seconds: float = math.inf) -> None:
        self.emit = emit
        self.time_budget_seconds = time_budget_seconds
        self.phase_seconds: dict[str, float] = {}
        self.stopped_by: BaseException | None = None
        self._started = self._emitted_at = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def seconds_left(self) -> float:
        """The seconds to the deadline, negative behind it."""
        return self.time_budget_seconds - self.seconds

    @property
    def seconds_silent(self) -> float:
        return time.monotonic() - self._emitted_at

    def restart_clock(self, seconds: float) -> None:
        """Set the clock to `seconds` after the start: what was waited for since costs the run no time."""
        self._started = time.monotonic() - seconds

    def check_deadline(self) -> None:
        """Raise TimeIsUp when the time budget is spent."""
        if self.seconds_left <= 0:
            raise TimeIsUp("the time budget is spent")

    def emit_event(self, event: str, **content: Any) -> None:
        self._emitted_at = time.monotonic()
        self.emit(event_of(event, self._emitted_at - self._started, **content))

    def begin(self, spec: Any, **content: Any) -> None:
        self.emit_event("started", schema=SCHEMA, spec=spec.to_dict(), **content)

    def log(self, message: str, level: str = "info") -> None:
        self.emit_event("log", level=level, message=message)

    def stage(self, stage: str) -> None:
        self.emit_event("stage", stage=stage)

    def phase(self, phase: str, **content: Any) -> None:
        self.emit_event("phase", phase=phase, **content)

    def timed(self, phase: str, work: Callable[[], T], **content: Any) -> T:
        """Do the work as a phase, and note how long it took in `phase_seconds`."""
        self.phase(phase, **content)
        before = time.monotonic()
        outcome = work()
        self.phase_seconds[phase] = time.monotonic() - before
        return outcome

    def unless_stopped(self, work: Callable[[], T], otherwise: T) -> T:
        """Do what the result can do without. Ctrl-C and SIGTERM end it at once, and the run once its result is kept."""
        if self.stopped_by is not None:
            return otherwise
        try:
            return work()
        except (KeyboardInterrupt, SystemExit) as stop:
            self.stopped_by = stop
            return otherwise

    def end(self, result: dict[str, Any]) -> None:
        self.phase("finished")
        self.emit_event("result", result=result)

    def finish(self, result: Result, keep: Callable[[Result], None]) -> Result:
        """Store the result (a disk's refusal is logged), end with it, and raise what stopped the run meanwhile."""
        try:
            keep(result)
        except OSError as exc:
            self.log(f"the result could not be written to a file: {exc}", "warning")
        self.end(result.to_dict())
        if self.stopped_by is not None:
            raise self.stopped_by
        return result
