"""What a command that measured ends with."""

from __future__ import annotations

from ..errors import DeviceUnavailable
from ..result import Reason, RunResult

EXIT_DOES_NOT_FIT, EXIT_TIME_BUDGET = 3, 5


def exit_status(result: RunResult) -> int:
    """Return 0 where a size trained; else the status that says why none is known."""
    if result.boundary.reason is Reason.TIME_BUDGET:
        return EXIT_TIME_BUDGET
    if result.boundary.largest_batch_size:
        return 0
    is_occupied = result.boundary.reason is Reason.FOREIGN_MEMORY
    return DeviceUnavailable.exit_status if is_occupied else EXIT_DOES_NOT_FIT
