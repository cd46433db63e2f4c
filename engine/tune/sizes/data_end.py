"""PURE: where the data, and not memory, ends a search: by the rows of one pass, which the first start tells."""

from __future__ import annotations

from dataclasses import dataclass

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
