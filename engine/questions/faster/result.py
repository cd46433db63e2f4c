"""PURE: what a race found: a row for each change and combination, the verdicts, and the headline in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ...facts.intervals import Interval
from ...facts.result import DeviceFacts, Savings
from ...facts.speed_rounds import SpeedClaim
from ...race.field import TODAY, Entry, RacedRound, RaceVerdict
from ...race.found import RaceFound
from ...race.lines import TORCH, Lines
from ...race.row import Row
from ...race.variants import CHANGES, Change, NotTried
from ...settings.spec import SCHEMA
from .spec import FasterSpec

NONE_COMPARED = "Nothing is claimed: no change was compared with today's training; each says why."


@dataclass(frozen=True, slots=True)
class AtSize:
    """Settings at the largest batch size that keeps the reserve, and their speed against today's training."""

    entry: Entry
    label: str
    batch_size: int
    largest_batch_size: int | None
    speed: Interval | None = None
    rough_speed: float | None = None
    reason: str | None = None
    failure: str | None = None
    """The error of its search or of a block, as worded by the measuring machine."""

    @property
    def option(self) -> str:
        """Write "bf16 autocast at 32", the name by which they race."""
        return f"{self.label} at {self.batch_size}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FasterResult(RaceFound):
    """The answer of a race, with the headline that follows from it.

    `at_today` is its verdict at today's batch size, `at_own_size` with sizes of their own. `own_difference` is how much
    the losses of today's training differ when it is repeated. The rounds hold everything that was timed, so that others
    can decide again.
    """

    device: DeviceFacts
    batch_size: int
    rows: tuple[Row, ...]
    not_tried: tuple[NotTried, ...]
    at_today: RaceVerdict
    own_difference: float | None
    sizes: tuple[AtSize, ...]
    at_own_size: RaceVerdict | None
    chosen_batch_size: int
    chosen: Entry
    gain: Interval | None
    claim: SpeedClaim
    savings: Savings
    lines: tuple[Lines, ...]
    rounds: tuple[RacedRound, ...]
    rounds_of_sizes: tuple[RacedRound, ...]
    others_cores: float | None
    cores: int
    environment: dict[str, Any]
    total_seconds: float
    spec: FasterSpec

    changes: ClassVar[Mapping[str, Change]] = CHANGES

    @property
    def deciding(self) -> RaceVerdict:
        return self.at_own_size if self.own_size is not None and self.at_own_size is not None else self.at_today

    @property
    def parts_raced(self) -> Sequence[tuple[RaceVerdict | None, Sequence[RacedRound]]]:
        return (self.at_today, self.rounds), (self.at_own_size, self.rounds_of_sizes)

    @property
    def own_size(self) -> int | None:
        return None if self.chosen_batch_size == self.batch_size else self.chosen_batch_size

    @property
    def stated_batch_size(self) -> int:
        return self.batch_size

    @property
    def today_bytes(self) -> int | None:
        return next((row.memory_bytes for row in self.rows if row.entry == TODAY), None)

    @property
    def line_count(self) -> int:
        return sum(len(each.lines) for each in self.lines if each.library == TORCH)

    @property
    def why_nothing(self) -> str:
        is_any_compared = any(row.speed is not None or row.rough_speed is not None for row in self.rows)
        return "" if is_any_compared or self.at_today.ended_early else NONE_COMPARED

    def to_dict(self) -> dict[str, Any]:
        whole = {"spec": self.spec.to_dict(), "device": self.device.to_dict()}
        return {"schema": SCHEMA, **asdict(self), **whole, "headline": self.headline}
