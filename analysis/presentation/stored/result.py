"""The stored JSON of a result, read back with what pages say of it.

The spec is read as it stands, so that a run of a model that is no longer in the catalogue can still be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis.presentation.stored.unreadable import read_stored
from engine.describe.boundary import is_today_refused
from engine.describe.reserve import keeps_reserve
from engine.describe.speed import claim_in
from engine.documents.measured import Measured
from engine.results.figure_kinds import EMULATED, grade_of
from engine.results.result import Point, Probe, Purpose, Reason
from engine.results.speed_rounds import SpeedClaim
from engine.results.stats import decisive_probes
from engine.tune.training import Training


@dataclass(frozen=True, slots=True)
class StoredResult(Measured):
    """A result as it was when the run finished, with what pages say of it."""

    training: Training | None = field(default=None, kw_only=True)

    @property
    def claim(self) -> SpeedClaim:
        return claim_in(self)

    @property
    def is_speed_measurable(self) -> bool:
        return self.claim is SpeedClaim.FIGURE

    @property
    def lacks_answer(self) -> bool:
        """Whether the speeds were to say which size is better, and did not: timing them again may."""
        is_searched = not self.is_check and self.boundary.reason is not Reason.TIME_BUDGET
        return is_searched and self.compares_speeds and self.claim is SpeedClaim.NOTHING

    @property
    def compares_speeds(self) -> bool:
        return bool(self.spec.get("compare_speed", True))

    @property
    def grade(self) -> str:
        """Whether its figures were measured, or emulated on one device."""
        return grade_of(self.spec)

    @property
    def is_emulated(self) -> bool:
        """Whether one device stood in for ranks: no speed can be compared."""
        return self.grade == EMULATED

    @property
    def is_check(self) -> bool:
        return self.spec.get("check_batch_size") is not None

    @property
    def is_fitting(self) -> bool:
        """Whether what was requested trains: some size, and today's where it was tried."""
        return self.largest is not None and not self.current_is_refused

    @property
    def free_bytes(self) -> int | None:
        if self.recommended is None or self.recommended.memory_bytes is None:
            return None
        return self.limit_bytes - self.recommended.memory_bytes

    @property
    def keeps_reserve(self) -> bool:
        """Whether the recommended size leaves the requested reserve; false also where either is unknown."""
        return self.recommended is not None and keeps_reserve(self, self.recommended)

    @property
    def higher(self) -> Probe | None:
        """The timed size whose figure is above that of the fastest, if any: too little to be told from it.

        The fastest is the smallest whose speed cannot be told from the highest: nobody may read it as the highest.
        """
        if self.fastest is None or self.fastest.samples_per_second is None:
            return None
        timed = [p for p in self.probes if p.purpose is Purpose.TIMING and p.samples_per_second is not None]
        best = max(timed, key=lambda probe: probe.samples_per_second or 0.0, default=None)
        if best is None or best.batch_size == self.fastest.batch_size:
            return None
        return best if (best.samples_per_second or 0.0) > self.fastest.samples_per_second else None

    @property
    def roles(self) -> dict[str, int | None]:
        """The batch size of each role in the result; none is called the fastest beside a higher figure."""
        return {
            "recommended": _size(self.recommended),
            "fastest": None if self.higher else _size(self.fastest),
            "largest": _size(self.largest),
            "current": self.current_batch_size,
        }

    @property
    def current_is_refused(self) -> bool:
        return is_today_refused(self)

    @property
    def unsteady_batch_sizes(self) -> list[int]:
        """The compared sizes whose timing did not become steady.

        Empty where the speeds have intervals, which express this.
        """
        if self.speed is not None:
            return []
        compared = {point.batch_size for point in (self.current, self.recommended) if point is not None}
        unsteady = {size for size, probe in decisive_probes(self.probes).items() if probe.timing_is_steady is False}
        return sorted(compared & unsteady)

    @property
    def speed_intervals(self) -> tuple[tuple[int, float, float], ...]:
        """The intervals of the sizes that were timed in enough rounds, in rising order."""
        points = [point for point in (self.largest, self.fastest, self.recommended, self.current) if point is not None]
        known = {
            (point.batch_size, point.samples_per_second_low, point.samples_per_second_high)
            for point in points
            if point.samples_per_second_low is not None and point.samples_per_second_high is not None
        }
        return tuple(sorted(known))

    @property
    def limit_bytes(self) -> int:
        return self.waste.capacity_bytes


def read_result(data: Mapping[str, Any]) -> StoredResult:
    """Read the result of a run, of this version or an earlier one. Raises UnreadableError."""
    return read_stored("result", StoredResult.from_dict, data)


def _size(point: Point | None) -> int | None:
    return None if point is None else point.batch_size
