"""What the command line prints while it works: the events of a run, as they come.

On a terminal a living line says what is tried now, and each finished phase leaves a short line. Elsewhere there is a
line for each phase and each probe, and after a minute without one what the living line would say.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any, Self, TextIO

from ...describe.time_left import TimeLeft, budget_of_race, so_far
from ...describe.time_left.live_progress import seconds_of
from ...describe.time_left.phase_facts import event_line, finding_of_phase, what_is_tried
from ...facts.progress import PHASE_NAMES
from ...machine.execution import Emit
from ...text.printable import printable
from ...text.units import format_duration
from .living_line import Doing, LivingLine, describe_doing, living_line
from .output import print_json
from .stopped import known_so_far
from .terminal import BOLD, LEAST_SECONDS, say

MESSAGE_MOST = 2_000
LEFT_SECONDS, LEFT_FRACTION = 20.0, 0.2
"""Where there is no living line, what is done and the time left are written after so long, and so much of the run."""

Event = Mapping[str, Any]
LineOf = Callable[[Event], str | None]


def phase_line(phase: str, finding: str, seconds: float, *, is_warned: bool = False) -> str:
    """Write "✓ Search         22 fits, 23 does not  (41 s)"; with a warning "!"; empty where it was left out."""
    if seconds < LEAST_SECONDS and not finding:
        return ""
    took = f"({format_duration(seconds)})" if seconds >= LEAST_SECONDS else ""
    shown = "  ".join(part for part in (finding, took) if part)
    return f"{'!' if is_warned else '✓'} {PHASE_NAMES.get(phase, phase):<16}{shown}"


def receiver(
    options: SimpleNamespace,
    spec: Mapping[str, Any] | None = None,
    *,
    stream: TextIO | None = None,
    line_of: LineOf = event_line,
) -> AbstractContextManager[Emit]:
    """Return what takes the events of a command: JSON lines with --events, else lines for people beside the result."""
    if options.events:
        return nullcontext(print_json)
    return Console(stream or (sys.stderr if options.json else sys.stdout), spec, line_of=line_of)


class Console:
    """Prints the events of a run. Only as a context does it have a living line, and say at Ctrl-C what is known."""

    def __init__(self, stream: TextIO, spec: Mapping[str, Any] | None = None, *, line_of: LineOf = event_line) -> None:
        self._stream = stream
        self._line_of = line_of
        self._run = TimeLeft(spec)
        self._begun = time.monotonic()
        self._starts = 0
        self._left_said_at = 0.0
        self._device = ""
        self._is_warned = False  # in the phase that goes on
        self._is_open = False
        self._living: LivingLine | None = None

    def __enter__(self) -> Self:
        self._is_open = True
        self._living = living_line(self._stream, self._doing)
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._is_open = False
        self._end_living_line()
        if isinstance(error, KeyboardInterrupt | SystemExit):
            error.add_note(known_so_far(self._run.probes, self._run.progress))

    def __call__(self, event: dict[str, Any]) -> None:
        before = self._run.progress
        if self._living is None and self._is_open and event["event"] == "started":
            self._living = living_line(self._stream, self._doing)  # one estimate after another
        self._follow(event)
        if self._living is None:
            self._write_plainly(event)
        else:
            self._write_above(self._living, event, before)
        if event["event"] == "result" or event.get("phase") == "finished":
            self._end_living_line()

    def _follow(self, event: Event) -> None:
        self._run.take(event)
        self._run.say(seconds_of(event))
        if seconds := seconds_of(event):  # an event without a time is from before the run
            self._begun = time.monotonic() - seconds
        if event["event"] == "probe_started":
            self._starts += 1
        elif event["event"] == "device":
            self._device = printable(event_line(event) or "")

    def _write_plainly(self, event: Event) -> None:
        if said := event.get("known"):
            say(f"{event['seconds']:7.1f}s  {printable(said)}", self._stream)
        line = self._own_line(event)
        if line is None and event["event"] == "stage" and not self._starts:
            line = f"{event['stage']} ..."  # loading the libraries takes long, and nothing else is written by then
        is_over = event["event"] == "result" or self._run.progress.get("phase") == "finished"
        next_at = self._left_said_at + max(LEFT_SECONDS, LEFT_FRACTION * seconds_of(event))
        if line is None and not is_over and seconds_of(event) >= next_at:
            line, self._left_said_at = describe_doing(self._doing()), seconds_of(event)
        if line is not None:
            say(f"{event['seconds']:7.1f}s  {line}", self._stream)

    def _write_above(self, living: LivingLine, event: Event, before: Mapping[str, Any]) -> None:
        if event["event"] == "phase" and "phase" in before:
            phase, known = str(before["phase"]), so_far(self._run.spec, before, self._run.probes)
            took = seconds_of(event) - float(before.get("phases", {}).get(phase, 0.0))
            finding = self._finding(phase, before) or finding_of_phase(phase, known)
            if text := phase_line(phase, finding, took, is_warned=self._is_warned):
                living.write(text)
            self._is_warned = False
            if told := event.get("known"):
                living.write(f"  {printable(told)}", BOLD)
        elif event["event"] in ("log", "estimate"):
            if line := self._own_line(event):
                is_warning = event.get("level") == "warning"
                self._is_warned = self._is_warned or is_warning
                living.write(f"  {line}", "yellow" if is_warning else "")
        elif event["event"] in ("probe_started", "timing", "stage"):
            living.refresh()

    def _finding(self, phase: str, progress: Mapping[str, Any]) -> str:
        if phase == "preparing":
            return self._device
        if phase == "timing" and progress.get("round"):
            return f"{progress['round']} round{'' if progress['round'] == 1 else 's'}"
        if phase == "predicting" and (cards := progress.get("cards")):
            return f"{cards} GPU{'' if cards == 1 else 's'}"
        return ""

    def _own_line(self, event: Event) -> str | None:
        """Return the line that the event gets: none for each GPU of an estimate of many, whose table follows."""
        is_one_of_many = event["event"] == "estimate" and "cards" in self._run.progress
        line = None if is_one_of_many else self._line_of(event)
        return line and printable(line, MESSAGE_MOST)

    def _doing(self) -> Doing:
        run, now = self._run, time.monotonic() - self._begun
        phase = str(run.progress.get("phase") or "")
        if phase == "finished":
            return Doing("Finishing", "", now, None)
        start = run.start_under_way(self._starts, now)
        tried = what_is_tried(run.progress, so_far(run.spec, run.progress, run.probes, now), start)
        is_most = budget_of_race(run.spec) is not None
        return Doing(PHASE_NAMES.get(phase, "Starting"), tried, now, run.left(now), is_most)

    def _end_living_line(self) -> None:
        if self._living is not None:
            self._living.end()
        self._living = None
