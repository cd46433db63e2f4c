"""The only writer of runs and of what belongs to them. Pages, API, admin and commands call these.

A running run is written by its owner alone: every such write says WHERE id AND token AND running, and
answers False when that found no row. False means the lease is lost: kill the engine, write nothing more.
The transitions are drawn in `analysis.models.Run`.
"""

from analysis.services.claiming import run_claim
from analysis.services.endings import (
    run_cancel,
    run_fail,
    run_finish,
    run_mark_cancelled,
    run_wants_cancel,
    runs_reap,
)
from analysis.services.lease import Lease, LogLine
from analysis.services.progress import (
    LOG_LINES_PER_ATTEMPT,
    LOG_MESSAGE_LENGTH,
    environment_set,
    log_add,
    measurement_add,
    run_heartbeat,
)
from analysis.services.submission import run_create, runs_cancel, wake_for, worker_wake

__all__ = [
    "LOG_LINES_PER_ATTEMPT",
    "LOG_MESSAGE_LENGTH",
    "Lease",
    "LogLine",
    "environment_set",
    "log_add",
    "measurement_add",
    "run_cancel",
    "run_claim",
    "run_create",
    "run_fail",
    "run_finish",
    "run_heartbeat",
    "run_mark_cancelled",
    "run_wants_cancel",
    "runs_cancel",
    "runs_reap",
    "wake_for",
    "worker_wake",
]
