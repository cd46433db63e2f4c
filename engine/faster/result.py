"""PURE: what a race found: a row for each change and combination, the verdicts, and the headline in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..race.field import TODAY, Entry, RacedRound, RaceVerdict
from ..race.found import RaceFound
from ..race.lines import TORCH, Lines
from ..race.numbers import UNKNOWN, Numbers
from ..race.text import headline, nothing_found
from ..race.variants import NotTried, label_of_entry
from ..results.intervals import Interval
from ..results.result import DeviceFacts, Savings
from ..results.speed_rounds import SpeedClaim
from ..spec import SCHEMA
from .spec import FasterSpec

NONE_COMPARED = "Nothing is claimed: no change was compared with today's training; each says why."


@dataclass(frozen=True, slots=True)
class Row:
    """One change, or several together, at today's batch size.

    `speed` is how many times as fast it is as today's, from all rounds that timed both; only the verdict's figure is
    from rounds of their own. `rough_speed` stands in its place where rounds are too few or disturbed for it.
    `reason` is why it has none. `largest_batch_size` is None where it was not searched.
    `pays_after_steps` are the steps after which the seconds of compiling are made up for.
    """

    entry: Entry
    label: str = ""
    kind: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    speed: Interval | None = None
    rough_speed: float | None = None
    samples_per_second: float | None = None
    memory_bytes: int | None = None
    numbers: Numbers = UNKNOWN
    largest_batch_size: int | None = None
    compile_seconds: float | None = None
    pays_after_steps: int | None = None
    reason: str | None = None


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

    @property
    def deciding(self) -> RaceVerdict:
        return self.at_own_size if self.own_size is not None and self.at_own_size is not None else self.at_today

    @property
    def own_size(self) -> int | None:
        return None if self.chosen_batch_size == self.batch_size else self.chosen_batch_size

    @property
    def stated_batch_size(self) -> int:
        return self.batch_size

    @property
    def is_found(self) -> bool:
        return self.chosen != TODAY or self.own_size is not None

    @property
    def today_bytes(self) -> int | None:
        return next((row.memory_bytes for row in self.rows if row.entry == TODAY), None)

    def headline_with(self, savings: Savings | None) -> str:
        if not self.is_found:
            if not self._is_any_compared and not self.at_today.ended_early:
                return NONE_COMPARED
            verdicts = [each for each in (self.at_today, self.at_own_size) if each is not None]
            return nothing_found(verdicts)
        lines = sum(len(each.lines) for each in self.lines if each.library == TORCH)
        labels = [label_of_entry(self.chosen)] if self.chosen else []
        labels += [] if self.own_size is None else [f"batch {self.own_size:,}"]
        return headline(self.deciding, lines=lines, label=" + ".join(labels), savings=savings)

    @property
    def _is_any_compared(self) -> bool:
        return any(row.speed is not None or row.rough_speed is not None for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        whole = {"spec": self.spec.to_dict(), "device": self.device.to_dict()}
        return {"schema": SCHEMA, **asdict(self), **whole, "headline": self.headline}


def order_of(rows: Sequence[Row]) -> list[Row]:

    def speed(row: Row) -> float:
        return row.speed.value if row.speed is not None else row.rough_speed or 0.0

    return sorted(rows, key=lambda row: (row.entry != TODAY, -speed(row)))
