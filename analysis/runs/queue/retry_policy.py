"""PURE: whether a run is tried again after an attempt without a result, by what caused the end.

| cause | at fault | next state |
|---|---|---|
| worker_stopped | nothing: an orderly stop | queued again, not counted |
| owner_died, host_lost | the worker or its host | queued again; after 3 counted attempts interrupted |
| engine_killed, engine_crashed, engine_worker_died, stalled | perhaps the run | queued again once, then failed |
| anything else | the run | failed |

In all cases: a run with a cancel request is cancelled, and no run has more than 3 counted attempts. A reported run has
one: no worker of this portal could make another. A run stopped where it ran is interrupted, like a lost one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from analysis.models import State
from engine.errors import WorkerDied
from engine.report.protocol import STOPPED

MAX_COUNTED_ATTEMPTS = 3


class Cause(StrEnum):
    """Why an attempt gave no result, where another attempt may succeed."""

    WORKER_STOPPED = "worker_stopped"
    OWNER_DIED = "owner_died"
    HOST_LOST = "host_lost"
    ENGINE_KILLED = "engine_killed"
    ENGINE_CRASHED = "engine_crashed"
    ENGINE_WORKER_DIED = WorkerDied.code
    STALLED = "stalled"
    STOPPED = STOPPED
    """Reported runs only: stopped by a person or a scheduler on its machine."""


_OF_THE_HOST = (Cause.OWNER_DIED, Cause.HOST_LOST)
_ONCE_MORE = (Cause.ENGINE_KILLED, Cause.ENGINE_CRASHED, Cause.ENGINE_WORKER_DIED, Cause.STALLED)


_DESCRIPTIONS: dict[str, str] = {
    Cause.OWNER_DIED: "its worker died",
    Cause.HOST_LOST: "its host stopped responding",
    Cause.ENGINE_KILLED: "something killed its engine",
    Cause.ENGINE_CRASHED: "its engine crashed",
    Cause.ENGINE_WORKER_DIED: "the engine's worker process was killed or crashed",
    Cause.STALLED: "its engine made no progress",
    Cause.STOPPED: "it was interrupted where it ran",
}


@dataclass(frozen=True, slots=True)
class RetryDecision:
    state: State
    counted: bool = True
    gives_up: bool = False
    """Whether there were too many attempts."""


def describe_attempts(causes: Sequence[str]) -> str:
    """Write "Given up after 3 attempts: its worker died 2 times, something killed its engine once."."""
    story = ", ".join(
        f"{_DESCRIPTIONS.get(cause, cause)} {'once' if count == 1 else f'{count} times'}"
        for cause, count in Counter(causes).items()
    )
    return f"Given up after {len(causes)} attempts: {story}."


def decide_retry(
    cause: str, earlier_counted: Sequence[str], *, cancel_requested: bool = False, is_reported: bool = False
) -> RetryDecision:
    """Return what follows this cause; `earlier_counted` are the causes of the counted attempts before this one."""
    is_counted = cause != Cause.WORKER_STOPPED
    if cancel_requested:
        return RetryDecision(State.CANCELLED, is_counted)
    if is_reported:
        return RetryDecision(State.INTERRUPTED if cause in (*_OF_THE_HOST, Cause.STOPPED) else State.FAILED)
    has_room = len(earlier_counted) + is_counted < MAX_COUNTED_ATTEMPTS
    if cause == Cause.WORKER_STOPPED or (cause in _OF_THE_HOST and has_room):
        return RetryDecision(State.QUEUED, is_counted)
    if cause in _OF_THE_HOST:
        return RetryDecision(State.INTERRUPTED, gives_up=True)
    was_given_again = any(other in _ONCE_MORE for other in earlier_counted)
    return RetryDecision(State.QUEUED if cause in _ONCE_MORE and has_room and not was_given_again else State.FAILED)
