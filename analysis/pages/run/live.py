"""A queued or running run: the content of its page, and the changes since a poller's last request."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from analysis.charts.curves import memory_plot
from analysis.models import Attempt, Measurement, Run, RunLog
from analysis.presentation import run_state
from analysis.presentation.kinds import presentation_of
from analysis.presentation.probe_rows import probe_key, probe_lines
from analysis.presentation.run_state import run_steps
from analysis.presentation.unreadable import read_or_none
from analysis.runs.queue.forecast import QueuePosition, queue_positions
from analysis.runs.queue.remaining_time import progress_of, remaining_time, so_far
from engine.questions.documents.estimated import EstimatedCard

LOG_LINES_SHOWN = 300
_PACES = ((10, 1), (60, 2), (300, 5))
SLOWEST_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Seen:
    """What a poller has already; `progress` is a checksum apart, as it changes more often than the state read aloud."""

    state: int = 0
    attempt: int = 0
    probes: int = 0
    lines: int = 0
    every_seconds: int = 0
    progress: int = 0

    @classmethod
    def of(cls, text: str) -> Seen:
        """Read an address; an invalid value means that the poller has nothing yet."""
        parts = text.split(".")
        are_numbers = all(part.isascii() and part.isdecimal() and len(part) < 11 for part in parts)
        return cls(*map(int, parts)) if are_numbers and len(parts) == len(cls.__slots__) else cls()

    def __str__(self) -> str:
        return ".".join(str(value) for value in asdict(self).values())


@dataclass(frozen=True, slots=True)
class Live:
    """The stored data of an unfinished run; `lines` are new to the poller, `seen` is what it has afterwards."""

    run: Run
    turn: QueuePosition | None
    attempt: Attempt | None
    probes: Sequence[Measurement]
    lines: Sequence[RunLog]
    is_appended: bool
    before: Seen
    seen: Seen

    @property
    def is_news(self) -> bool:
        return self.seen != self.before

    @property
    def has_new_state(self) -> bool:
        return self.seen.state != self.before.state

    @property
    def has_new_progress(self) -> bool:
        return self.has_new_state or self.has_new_probes or self.seen.progress != self.before.progress

    @property
    def has_new_probes(self) -> bool:
        return (self.seen.attempt, self.seen.probes) != (self.before.attempt, self.before.probes)

    @property
    def has_new_lines(self) -> bool:
        return bool(self.lines) or self.seen.attempt != self.before.attempt


def poll_seconds(idle_seconds: float) -> int:
    """Return the interval of polling, by the time without changes: 3 -> 1, 45 -> 2, 200 -> 5, an hour -> 15."""
    return next((pace for below, pace in _PACES if idle_seconds < below), SLOWEST_SECONDS)


def read_live(run: Run, before: Seen) -> Live:
    turn = queue_positions([run]).get(run.pk)
    attempt = run.attempts.filter(number=run.attempt).first()
    probes = list(Measurement.objects.of(run))
    follows = before.attempt == run.attempt and before.lines > 0
    # the last line that is shown already is read again: it tells the time of the last line
    newest = RunLog.objects.of(run).filter(sequence__gte=before.lines if follows else 0)
    lines = list(newest.reverse()[:LOG_LINES_SHOWN])[::-1]
    # everything that the text of the state depends on, except the time
    waits_for = turn and (turn.position, turn.after_run, turn.held and (turn.held.held_process, turn.held.held_work))
    state = (run.state, run.phase, run.cancel_requested, run.attempt, waits_for, run_state.is_silent(run))
    seen = Seen(
        state=_checksum(state),
        attempt=run.attempt,
        probes=probes[-1].sequence if probes else 0,
        lines=lines[-1].sequence if lines else 0,
        every_seconds=poll_seconds(_idle_seconds(run, probes, lines)),
        progress=_checksum(progress_of(attempt)),
    )
    # more lines arrived than are shown: the list is replaced, because some would be missing
    is_appended = follows and bool(lines) and lines[0].sequence <= before.lines
    fresh = [line for line in lines if not is_appended or line.sequence > before.lines]
    return Live(run, turn, attempt, probes, fresh, is_appended, before, seen)


def live_context(live: Live) -> dict[str, Any]:
    """Return the context of the page, or of the parts that changed."""
    run, probes, measured = live.run, live.probes, measured_so_far(live.run, live.attempt, live.probes)
    left = remaining_time(run, live.attempt)
    time_left = run_state.describe_remaining_time(left) if left else None
    known, progress = so_far(run, live.attempt, probes), progress_of(live.attempt)
    steps = run_steps(run, known, measured["estimate"], progress)
    return {
        **measured,
        "live": live,
        "doing": presentation_of(run).doing(run),
        "seen": str(live.seen),
        "every_seconds": live.seen.every_seconds,
        "phase_text": run_state.describe_phase(run, live.turn),
        "silence": run_state.describe_silence(run),
        "time_left": time_left,
        "steps": steps,
        "tab_title": run_state.tab_title(run, steps.text, time_left.roughly if time_left else "", live.turn),
        "log_lines": live.lines,
    }


def measured_so_far(run: Run, attempt: Attempt | None, probes: Sequence[Measurement]) -> dict[str, Any]:
    """Return the estimate before the last attempt, its probes, and their chart; the only known role is today's size."""
    environment = (attempt.environment if attempt else None) or {}
    estimate, device = read_or_none(EstimatedCard.from_dict, environment.get("estimate")), environment.get("device")
    limit_bytes = device.get("limit_bytes") if isinstance(device, dict) else None
    limit_bytes = limit_bytes if isinstance(limit_bytes, int) and limit_bytes > 0 else None
    roles = {"current": run.spec.get("current_batch_size")}
    carried = frozenset(map(probe_key, (row for row in probes if row.is_carried)))
    return {
        "estimate": estimate,
        "chart": memory_plot([row.probe for row in probes], limit_bytes=limit_bytes, roles=roles, estimate=estimate),
        "probe_lines": probe_lines([row.probe for row in probes], roles, carried, estimate),
    }


def _checksum(seen: object) -> int:
    return zlib.crc32(repr(seen).encode())


def _idle_seconds(run: Run, probes: Sequence[Measurement], lines: Sequence[RunLog]) -> float:
    moments: list[datetime | None] = [run.created_at, run.started_at]
    moments += [probe.recorded_at for probe in probes[-1:]]
    moments += [line.recorded_at for line in lines[-1:]]
    latest = max(moment for moment in moments if moment is not None)
    return (timezone.now() - latest).total_seconds()
