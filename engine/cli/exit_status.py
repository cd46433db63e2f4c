"""What a command that measured ends with."""

from __future__ import annotations

from ..errors import DeviceUnavailable
from ..result import Boundary, Reason, RunResult

EXIT_DOES_NOT_FIT, EXIT_TIME_BUDGET = 3, 5
EXIT_REGRESSION = 7
"""Of `check`, which measures nothing: elsewhere 7 is what cannot be estimated."""
EXIT_NOT_SYNCED = 8
"""Of `sync`: a document was refused, or the portal could not be reached."""


def exit_status(result: RunResult) -> int:
    """Return 0 where a size trained; else the status that says why none is known."""
    return exit_status_of(result.boundary)


def exit_status_of(boundary: Boundary) -> int:
    """Return the exit status of a run with this boundary."""
    if boundary.reason is Reason.TIME_BUDGET:
        return EXIT_TIME_BUDGET
    if boundary.largest_batch_size:
        return 0
    is_occupied = boundary.reason is Reason.FOREIGN_MEMORY
    return DeviceUnavailable.exit_status if is_occupied else EXIT_DOES_NOT_FIT
