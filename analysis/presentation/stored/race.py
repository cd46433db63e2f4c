"""A stored race, read for its page: the headline, a row for each change, and the lines to paste."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.presentation.stored.unreadable import read_stored
from engine.documents.raced import Raced
from engine.faster.result import AtSize, Row, order_of
from engine.race.lines import Lines, distinct
from engine.race.text import describe_basis, describe_numbers, describe_rough
from engine.race.variants import NotTried
from engine.results.intervals import Interval
from engine.results.result import DeviceFacts
from engine.results.speed_rounds import SpeedClaim
from engine.speed.claim import describe_bounds, describe_lower_bound
from engine.text.units import format_factor


@dataclass(frozen=True, slots=True)
class StoredRace:
    """The result of a finished race. `factor` is empty where nothing is claimed, `basis` where no saving is named."""

    headline: str
    basis: str
    factor: str
    batch_size: int
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
    is_of_command: bool = False
    """Whether whole starts of a command raced, and no blocks of steps."""


@dataclass(frozen=True, slots=True)
class RaceRow:
    """One row of the table, at today's batch size. `is_on_top`: not against today's, but both with other changes."""

    row: Row
    speed: str
    numbers: str
    is_on_top: bool = False


@dataclass(frozen=True, slots=True)
class SizeRow:
    """Settings at the largest batch size that keeps the reserve."""

    at: AtSize
    speed: str


def speed_in_words(of: Row | AtSize) -> str:
    """Write "1.42x, 1.39 to 1.46x", or "about 1.4x" where no interval is known; empty where it was not measured."""
    if of.speed is not None:
        return f"{of.speed.value:.2f}x, {describe_bounds(of.speed.low, of.speed.high)}"
    return describe_rough(of.rough_speed)


def claimed_factor(gain: Interval | None, claim: SpeedClaim) -> str:
    """Write "1.4x" or "at least 1.3x"; empty where nothing is claimed."""
    if gain is None:
        return ""
    return f"at least {describe_lower_bound(gain.low)}" if claim is SpeedClaim.AT_LEAST else format_factor(gain.value)


def read_race(result: Mapping[str, Any]) -> StoredRace:
    """Read the result of a finished race. Raises UnreadableError."""
    return read_stored("result", _read_race, result)


def _read_race(result: Mapping[str, Any]) -> StoredRace:
    read = Raced.from_dict(result)
    return StoredRace(
        headline=read.headline,
        basis=describe_basis(read.savings),
        factor=claimed_factor(read.gain, read.claim),
        batch_size=read.batch_size,
        rows=tuple(RaceRow(row, speed_in_words(row), describe_numbers(row.numbers)) for row in order_of(read.rows)),
        sizes=tuple(SizeRow(each, speed_in_words(each)) for each in read.sizes if each.batch_size),
        not_tried=read.not_tried,
        lines=distinct(read.lines),
        rounds=len(read.rounds) + len(read.rounds_of_sizes),
        own_rounds=read.deciding.rounds,
        device=read.device,
        environment=read.environment,
        total_seconds=read.total_seconds,
    )
