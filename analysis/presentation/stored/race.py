"""A stored race, read for its page: the headline, a row for each change, and the lines to paste."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.presentation.stored.unreadable import read_stored
from engine.documents.raced import Raced
from engine.faster.result import AtSize, Row, order_of
from engine.race.field import TODAY, Entry
from engine.race.lines import Lines, distinct
from engine.race.text import (
    NO_GAIN,
    describe_basis,
    describe_gain,
    describe_numbers,
    describe_saving,
    speed_text,
    without_saving,
)
from engine.race.variants import NotTried, label_of_entry
from engine.results.intervals import Interval
from engine.results.result import DeviceFacts, Savings
from engine.results.savings import savings_assuming
from engine.results.speed_rounds import SpeedClaim
from engine.text.units import format_percent
from engine.tune.faster.result import NONE_RACED, NOT_TOGETHER

_IN_SHORT = {NO_GAIN: "nothing found", NONE_RACED: "nothing to race", NOT_TOGETHER: "nothing recommended"}


@dataclass(frozen=True, slots=True)
class Saver:
    """A change for less memory alone, and the share of today's peak that it saves."""

    label: str
    saved: float


@dataclass(frozen=True, slots=True)
class StoredRace:
    """The result of a finished race. `basis` is empty where no saving is named, `gain` where nothing is recommended.

    Where it is not, `chosen` and what follows say nothing: `recommended` are the labels of the changes, and
    `chosen_batch_size` is the size that goes with them, None for today's. `batch_size` is today's, None where it may be
    another than the one that was seen.
    """

    headline: str
    basis: str
    gain: Interval | None
    claim: SpeedClaim
    chosen: Entry
    recommended: tuple[str, ...]
    chosen_batch_size: int | None
    batch_size: int | None
    rows: tuple[RaceRow, ...]
    sizes: tuple[SizeRow, ...]
    not_tried: tuple[NotTried, ...]
    lines: tuple[Lines, ...]
    rounds: int
    own_rounds: int
    device: DeviceFacts
    environment: Mapping[str, Any]
    total_seconds: float
    remarks: tuple[str, ...] = ()
    savers: tuple[Saver, ...] = ()
    """What is offered for less memory, beside what is recommended for speed."""
    is_of_command: bool = False
    """Whether whole starts of a command raced, and no blocks of steps."""

    @property
    def factor(self) -> str:
        """Write "1.90x [1.81, 2.02] as fast", as the headline does; empty where nothing is recommended."""
        is_found = self.gain is not None or (self.claim is SpeedClaim.AHEAD and bool(self.lines))
        return describe_gain(self.claim, self.gain, self.own_rounds) if is_found else ""

    @property
    def in_short(self) -> str:
        """Write the factor, else "44.4 % less memory", else what the headline says of why nothing is recommended."""
        if self.factor:
            return self.factor
        if self.savers:
            return f"{format_percent(self.savers[0].saved)} less memory"
        return next((short for said, short in _IN_SHORT.items() if self.headline.endswith(said)), "nothing claimed")

    @property
    def is_answered(self) -> bool:
        """Whether anything is recommended, for speed or for less memory."""
        return bool(self.factor or self.savers)

    @property
    def has_own_size(self) -> bool:
        """Whether another batch size than today's is a part of what is recommended."""
        return bool(self.factor) and self.chosen_batch_size not in (None, self.batch_size)

    @property
    def size_of_today(self) -> str:
        """Write "batch 16", or "the script's own batch size" where that may be another than the one that was seen."""
        return "the script’s own batch size" if self.batch_size is None else f"batch {self.batch_size:,}"

    def headline_assuming(self, money: Savings) -> str:
        """Write the headline with the saving under the assumptions of `money`, and with those; not under its own."""
        headline = without_saving(self.headline)
        if self.gain is None:
            return headline
        again = savings_assuming(
            None if self.claim is SpeedClaim.AT_LEAST else self.gain.value,
            speedup_low=self.gain.low,
            speedup_high=self.gain.high,
            price_per_hour_usd=money.price_per_hour_usd,
            hours_per_run=money.hours_per_run,
            runs_per_year=money.runs_per_year,
        )
        saved = describe_saving(again)
        return f"{headline} It saves {saved} a year. {describe_basis(again)}" if saved else headline

    @property
    def today_bytes(self) -> int | None:
        return next((each.row.memory_bytes for each in self.rows if each.row.entry == TODAY), None)

    def memory_change(self, row: Row) -> float | None:
        """Return how much more memory a row takes than today's training, as a share of that; None where not known."""
        if row.memory_bytes is None or not self.today_bytes:
            return None
        return row.memory_bytes / self.today_bytes - 1


@dataclass(frozen=True, slots=True)
class RaceRow:
    """One row of the table, at today's batch size. `is_on_top`: not against today's, but both with other changes."""

    row: Row
    speed: str
    numbers: str
    is_on_top: bool = False


@dataclass(frozen=True, slots=True)
class SizeRow:
    """Settings at the largest batch size that keeps the reserve; `note` says why they have no speed."""

    at: AtSize
    speed: str
    note: str


def read_race(result: Mapping[str, Any]) -> StoredRace:
    """Read the result of a finished race. Raises UnreadableError."""
    return read_stored("result", _read_race, result)


def _read_race(result: Mapping[str, Any]) -> StoredRace:
    read = Raced.from_dict(result)
    return StoredRace(
        headline=read.headline,
        basis=describe_basis(read.savings),
        gain=read.gain,
        claim=read.claim,
        chosen=read.chosen,
        recommended=tuple(label_of_entry((name,)) for name in read.chosen),
        chosen_batch_size=read.chosen_batch_size,
        batch_size=read.batch_size,
        rows=tuple(
            RaceRow(row, speed_text(row.speed, row.rough_speed, read.at_today), describe_numbers(row.numbers))
            for row in order_of(read.rows)
        ),
        sizes=tuple(_size_row(each, read) for each in read.sizes if each.batch_size or each.reason),
        not_tried=read.not_tried,
        lines=distinct(read.lines),
        rounds=sum(each.failed is None for each in (*read.rounds, *read.rounds_of_sizes)),
        own_rounds=read.deciding.rounds,
        device=read.device,
        environment=read.environment,
        total_seconds=read.total_seconds,
    )


def _size_row(at: AtSize, read: Raced) -> SizeRow:
    note = at.reason or ("" if at.batch_size > read.batch_size else "not larger than today’s: not raced")
    return SizeRow(at, speed_text(at.speed, at.rough_speed, read.at_own_size), note)
