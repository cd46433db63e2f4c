"""The only functions that write runs and the rows of runs. Pages, API, admin and commands call these.

Only its owner writes a running run: every such write has WHERE id AND token AND running, and returns False when that
finds no row. False means that the lease is lost: kill the engine, write nothing more.
The transitions are drawn in `analysis.models.Run`.
"""

from analysis.runs.bulk import BulkResult
from analysis.runs.device_admin import calibration_set, devices_set_enabled, maintenance_set_drained
from analysis.runs.earlier.races import race_start
from analysis.runs.earlier.what_to_change import changes_estimate, changes_measure
from analysis.runs.keeping.purge import logs_trim, runs_delete, runs_expire, runs_purge, runs_restore
from analysis.runs.marks.annotations import (
    run_annotate,
    runs_set_baseline,
    runs_tag,
    runs_untag,
    saved_view_delete,
    saved_view_set,
    step_acknowledge,
)
from analysis.runs.queue.again import run_again, runs_retry
from analysis.runs.queue.claim import DeviceSet, claim_next, estimate_claim, run_claim, set_claim
from analysis.runs.queue.create import (
    estimator_wake,
    run_create,
    runs_cancel,
    runs_cancel_by,
    runs_cancel_waiting_of,
    wake_for,
    worker_wake,
)
from analysis.runs.queue.finish import (
    run_fail,
    run_finish,
    run_mark_cancelled,
    run_wants_cancel,
    runs_reap,
)
from analysis.runs.queue.progress import (
    LOG_LINES_PER_ATTEMPT,
    Lease,
    LogLine,
    Measured,
    attempt_set,
    log_add,
    measurement_add,
    measurements_add,
    run_heartbeat,
)
from analysis.runs.queue.queue_now import index_of
from analysis.runs.reported.trust import trust_give, trust_revoke
