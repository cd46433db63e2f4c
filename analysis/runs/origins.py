"""What depends on where a run is executed: by a worker of this portal, or by a sender on another machine.

It is independent of the kind. What a sender executes is never queued here; `analysis.runs.reported.trust` decides whose
runs count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from analysis.models import Run, RunOrigin
from analysis.runs.queue.retry_policy import RetryDecision, decide_end_elsewhere, decide_retry


@dataclass(frozen=True, slots=True)
class OriginRules:
    """The rules of an origin. A text is the reason why something is not done; empty: it may be."""

    decide: Callable[..., RetryDecision]
    """What follows an attempt without a result."""
    not_timed_again: str = ""
    not_started_here: str = ""
    """Why a command is not: its sender chose its settings, which no registration offers."""


BY_ORIGIN: Mapping[RunOrigin, OriginRules] = {
    RunOrigin.HERE: OriginRules(decide_retry),
    RunOrigin.REPORTED: OriginRules(
        decide_end_elsewhere,
        not_timed_again="it ran on a machine that no worker of this portal serves",
        not_started_here="it was reported from {host}: what ran elsewhere is not started here",
    ),
}


def origin_rules(run: Run) -> OriginRules:
    return BY_ORIGIN[run.origin]
