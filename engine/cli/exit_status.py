"""Exit statuses of the commands."""

from __future__ import annotations

from ..errors import DeviceUnavailable
from ..facts.result import Reason, RunResult
from ..questions.validation.verdict import Verdict

EXIT_STATUSES = (
    "Exit status: 0 ok, 1 failed, 2 bad arguments, 3 does not fit, 4 device not available or busy, "
    "5 time budget spent, 6 pretrained weights not available."
)
"""What the help of the commands that measure says."""
EXIT_DOES_NOT_FIT, EXIT_TIME_BUDGET = 3, 5
EXIT_FITS_NOT = 1
"""Exit status of `fit` where no requested GPU is known to fit."""
EXIT_REGRESSION = 7
"""Exit status of `check` for a regression; other commands exit with 7 where nothing can be estimated."""
EXIT_NOT_SYNCED = 8
"""Exit status of `sync` where a document was refused, or the portal could not be reached."""


def exit_status(result: RunResult) -> int:
    """Return 0 where a size trained, or else the status for the reason why none is known."""
    boundary = result.boundary
    if boundary.reason is Reason.TIME_BUDGET:
        return EXIT_TIME_BUDGET
    if boundary.largest_batch_size:
        return 0
    is_occupied = boundary.reason is Reason.FOREIGN_MEMORY
    return DeviceUnavailable.exit_status if is_occupied else EXIT_DOES_NOT_FIT


def exit_status_of_validation(verdict: Verdict) -> int:
    """Return 1 where a check failed; a warning is no failure."""
    return int(verdict is Verdict.FAILED)
