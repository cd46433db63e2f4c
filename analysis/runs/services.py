"""The only functions that write runs and the rows that belong to them. Pages, API, admin and commands call these.

Only its owner writes a running run: every such write has WHERE id AND token AND running, and returns False when that
finds no row. False means that the lease is lost: kill the engine, write nothing more.
The transitions are drawn in `analysis.models.Run`.
"""

from analysis.runs.acknowledge import step_acknowledge
from analysis.runs.annotate import (
    BulkResult,
    run_again,
    run_annotate,
    runs_cancel_by,
    runs_delete,
    runs_restore,
    runs_retry,
    runs_set_baseline,
    runs_tag,
    runs_untag,
)
from analysis.runs.claim import estimate_claim, run_claim
from analysis.runs.create import (
    estimator_wake,
    run_create,
    runs_cancel,
    runs_cancel_waiting_of,
    wake_for,
    worker_wake,
)
from analysis.runs.device_admin import devices_set_enabled, maintenance_set_drained
from analysis.runs.estimates import calibration_set, estimate_create
from analysis.runs.finish import (
    run_cancel,
    run_fail,
    run_finish,
    run_mark_cancelled,
    run_wants_cancel,
    runs_reap,
)
from analysis.runs.lease import Lease, LogLine
from analysis.runs.progress import (
    LOG_LINES_PER_ATTEMPT,
    LOG_MESSAGE_LENGTH,
    environment_set,
    log_add,
    measurement_add,
    progress_set,
    run_heartbeat,
)
from analysis.runs.purge import logs_trim, runs_expire, runs_purge
from analysis.runs.saved_views import saved_view_delete, saved_view_set
from analysis.runs.trust import trust_give, trust_revoke
from analysis.runs.what_to_change import changes_estimate, changes_measure

__all__ = [
    "LOG_LINES_PER_ATTEMPT",
    "LOG_MESSAGE_LENGTH",
    "BulkResult",
    "Lease",
    "LogLine",
    "calibration_set",
    "changes_estimate",
    "changes_measure",
    "devices_set_enabled",
    "environment_set",
    "estimate_claim",
    "estimate_create",
    "estimator_wake",
    "log_add",
    "logs_trim",
    "maintenance_set_drained",
    "measurement_add",
    "progress_set",
    "run_again",
    "run_annotate",
    "run_cancel",
    "run_claim",
    "run_create",
    "run_fail",
    "run_finish",
    "run_heartbeat",
    "run_mark_cancelled",
    "run_wants_cancel",
    "runs_cancel",
    "runs_cancel_by",
    "runs_cancel_waiting_of",
    "runs_delete",
    "runs_expire",
    "runs_purge",
    "runs_reap",
    "runs_restore",
    "runs_retry",
    "runs_set_baseline",
    "runs_tag",
    "runs_untag",
    "saved_view_delete",
    "saved_view_set",
    "step_acknowledge",
    "trust_give",
    "trust_revoke",
    "wake_for",
    "worker_wake",
]
