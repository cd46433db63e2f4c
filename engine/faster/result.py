"""PURE: what a race found: a row for each change and combination, the verdicts, and the headline in a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..race.field import TODAY, Entry, RacedRound, RaceVerdict
from ..race.lines import TORCH, Lines
from ..race.numbers import UNKNOWN, Numbers
from ..race.variants import NotTried
from ..results.intervals import ENOUGH_ROUNDS, Interval
from ..results.result import DeviceFacts, Savings
from ..results.speed_rounds import SpeedClaim
from ..spec import SCHEMA
from ..speed.claim import describe_lower_bound
from ..speed.rounds import describe_others
from ..text.units import format_usd
from .spec import FasterSpec


@dataclass(frozen=True, slots=True)
class Row:
    """One change, or several together, at today's batch size.

    `speed` is how many times as fast it is as today's, from all rounds that timed both; only the verdict's figure is
    from rounds of their own. `reason` is why it has none. `largest_batch_size` is None where it was not searched.
    `pays_after_steps` are the steps after which the seconds of compiling are made up for.
    """

    entry: Entry
    label: str
    kind: str
    settings: dict[str, Any]
    speed: Interval | None = None
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
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class FasterResult:
    """The answer of a race. `at_today` is its verdict at today's batch size, `at_own_size` with sizes of their own.

    `own_difference` is how much the losses of today's training differ when it is repeated. The rounds hold everything
    that was timed, so that others can decide again.
    """

    spec: FasterSpec
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
    total_seconds: float = 0.0

    @property
    def is_found(self) -> bool:
        return self.gain is not None and (self.chosen != TODAY or self.chosen_batch_size != self.batch_size)

    @property
    def headline(self) -> str:
        """Write "1.90x [1.81, 2.02] as fast with 3 lines: AdamW, fused + bf16 autocast." or why nothing is claimed."""
        if not self.is_found:
            return _nothing(self)
        assert self.gain is not None
        count = len(next(each.lines for each in self.lines if each.library == TORCH))
        label = " + ".join(
            [
                *([next(row.label for row in self.rows if row.entry == self.chosen)] if self.chosen else []),
                *([f"batch {self.chosen_batch_size:,}"] if self.chosen_batch_size != self.batch_size else []),
            ]
        )
        low, high = f"{math.floor(self.gain.low * 100) / 100:.2f}", f"{math.ceil(self.gain.high * 100) / 100:.2f}"
        figure = f"{self.gain.value:.2f}x [{low}, {high}] as fast"
        if self.claim is SpeedClaim.AT_LEAST:
            figure = f"At least {describe_lower_bound(self.gain.low)} as fast"
        saved = self.savings.per_year_usd if self.savings.per_year_usd is not None else self.savings.per_year_usd_low
        least = "at least " if self.savings.per_year_usd is None else ""
        money = f"; saves {least}{format_usd(saved)} a year" if saved is not None and saved >= 0.01 else ""
        return f"{figure} with {count} line{'' if count == 1 else 's'}: {label}{money}."

    def to_dict(self) -> dict[str, Any]:
        whole = {"spec": self.spec.to_dict(), "device": self.device.to_dict()}
        return {"schema": SCHEMA, **asdict(self), **whole, "headline": self.headline}


def _nothing(result: FasterResult) -> str:
    verdicts = [each for each in (result.at_today, result.at_own_size) if each is not None]
    is_open = [each for each in verdicts if each.claim is SpeedClaim.NOTHING]
    if not is_open:
        return "Nothing found: no change that was tried makes this training faster by 3 % or more."
    if any(each.ended_early for each in is_open):
        return "Nothing is claimed: the time budget ended before the fastest change was compared with today's training."
    if (others := describe_others(result.others_cores, result.cores)) is not None and any(
        each.quiet_rounds < ENOUGH_ROUNDS for each in is_open
    ):
        return f"Nothing is claimed: {others}, which slows the variants down unequally. Try again on an idle machine."
    return "Nothing is claimed: the speeds of the fastest change and of today's training vary too much here."


def pays_after(compile_seconds: float | None, speed: Interval | None, step_seconds: float | None) -> int | None:
    """Return the steps after which compiling is made up for; None where a step is not shown to be faster.

    >>> pays_after(30.0, Interval(1.4, 1.5, 1.6), 0.3)
    300
    """
    if compile_seconds is None or speed is None or step_seconds is None or speed.low <= 1:
        return None
    return math.ceil(round(compile_seconds / (step_seconds * (1 - 1 / speed.value)), 6))


def order_of(rows: Sequence[Row]) -> list[Row]:
    """Return today's row first, then those with a speed, the fastest first, then the others."""
    return sorted(rows, key=lambda row: (row.entry != TODAY, row.speed is None, -(row.speed.value if row.speed else 0)))
