"""PURE: where the data, and not memory, ends a search.

The first start tells how many rows one pass over the data has, and how many micro-batches a step takes. So the largest
size that the data can feed is known without a search: it is started, and then the size above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..results.result import Outcome, Probe
from .next_size import Start, is_within_reach

if TYPE_CHECKING:
    from .evidence import Evidence

STEPS_OF_A_PROBE = 3  # the fewest optimizer steps that are a probe; a script may make all of them in one pass


@dataclass(frozen=True, slots=True)
class DataEnd:
    """The rows of one pass over the training's data in one process, and the micro-batches of an optimizer step."""

    rows: int
    micro_batches: int

    @property
    def largest(self) -> int:
        return self.rows // self.micro_batches

    @property
    def walls(self) -> tuple[int, ...]:
        """The largest sizes with which one pass makes 1, 2 and 3 optimizer steps, the largest size first.

        A script that makes three passes or more trains with the first, one that makes a single pass with the last.
        """
        sizes = dict.fromkeys(self.rows // (self.micro_batches * steps) for steps in range(1, STEPS_OF_A_PROBE + 1))
        return tuple(size for size in sizes if size)

    def describe(self, size: int) -> str:
        """Say why the data cannot feed `size`: 4,096 rows allow batches of up to 2,048."""
        wall = max((wall for wall in self.walls if wall < size), default=None)
        per_step = f", {self.micro_batches} micro-batches a step" if self.micro_batches > 1 else ""
        allowed = f"do not feed {size:,}" if wall is None else f"allow batches of up to {wall:,}"
        return f"the data's {self.rows:,} rows {allowed}{per_step}"


def size_before_the_data_ends(
    size: int, data_end: DataEnd | None, starts: Sequence[Start], probes: Sequence[Probe], memory_bytes: int
) -> int:
    """Return `size`, or where the data should end first: the largest size that it can feed, and then the one above."""
    most_trained = max((s.batch_size for s in starts if s.fits), default=0)
    too_large = {p.batch_size for p in probes if p.outcome is Outcome.SIZE_LIMIT}
    walls = data_end.walls if data_end else ()
    wall = next((each for each in walls if each >= most_trained and each not in too_large), None)
    if wall is None:
        return size
    if wall == most_trained:
        return wall + 1
    for_memory = [s for s in starts if s.batch_size not in too_large]
    return wall if size > wall or is_within_reach(wall, for_memory, memory_bytes) else size


def data_end_of(evidence: Iterable[Evidence]) -> DataEnd | None:
    """Return where the data ends; None where it is not known, or a step's micro-batches follow the size."""
    seen = {(e.rows_of_a_pass, e.micro_batches) for e in evidence if e.probe.fits}
    if len(seen) != 1:
        return None
    rows, micro_batches = seen.pop()
    return DataEnd(rows, micro_batches) if rows and micro_batches else None
