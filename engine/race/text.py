"""PURE: what a race found, as text: one headline, one table, the lines to paste."""

from __future__ import annotations

from collections.abc import Sequence

from ..results.intervals import Interval
from ..results.result import Savings
from ..results.speed_rounds import SpeedClaim
from ..speed.claim import describe_lower_bound, is_gain
from ..speed.rounds import describe_others
from ..text.units import format_bytes, format_duration, format_least_usd, format_usd
from .field import Entry, RaceVerdict
from .row import Row

HEADINGS = ("change", "speed", "memory", "numbers", "compiling")
FIGURES = (1, 2)
LESS_MEMORY = 0.98
"""A change whose peak is below this share of today's is said to save memory."""
_OTHER_DRAWS = "other random numbers"
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def headline(
    verdict: RaceVerdict,
    chosen: Entry,
    rows: Sequence[Row],
    savings: Savings,
    *,
    raced: int,
    others_cores: float | None = None,
    cores: int | None = None,
) -> str:
    """Write "1.9x [1.8, 2.0] as fast with three lines; saves $260 a year", or why nothing is recommended.

    `chosen` are the changes that are recommended, of the `raced` ones. Other work used `others_cores` of `cores`.
    """
    if not chosen or verdict.gain is None:
        return _nothing(verdict, raced, describe_others(others_cores, cores))
    lines = sum(len(row.lines.splitlines()) for row in rows if row.name in chosen)
    count = _COUNTS[lines] if lines < len(_COUNTS) else str(lines)
    with_lines = f"as fast with {count} line{'' if lines == 1 else 's'}"
    if verdict.claim is SpeedClaim.AT_LEAST:
        saved = (
            f"; saves at least {format_least_usd(savings.per_year_usd_low)} a year" if savings.per_year_usd_low else ""
        )
        return f"At least {describe_lower_bound(verdict.gain.low)} {with_lines}{saved}."
    saved = f"; saves {format_usd(savings.per_year_usd)} a year" if savings.per_year_usd else ""
    return f"{describe_speed(verdict.gain)} {with_lines}{saved}."


def _nothing(verdict: RaceVerdict, raced: int, others: str | None) -> str:
    if not raced:
        return "Nothing found: no change of the speed applies here, or trains the same."
    if verdict.claim is SpeedClaim.NOTHING:
        why = others or ("the time ended first" if verdict.ended_early else "they differ too much from start to start")
        return f"Nothing is claimed: speeds were not measurable here now, {why}."
    tried = "the one change that was raced is not" if raced == 1 else f"none of the {raced} changes that were raced is"
    return f"Nothing found: {tried} shown to be faster{f', while {others}' if others else ''}."


def describe_speed(speed: Interval) -> str:
    """Write "1.9x [1.8, 2.0]".

    >>> describe_speed(Interval(1.04, 1.06, 1.08))
    '1.06x [1.04, 1.08]'
    """
    decimals = 2 if speed.low < 1.1 else 1
    return f"{speed.value:.{decimals}f}x [{speed.low:.{decimals}f}, {speed.high:.{decimals}f}]"


def cells(row: Row, today_bytes: int | None) -> tuple[str, ...]:
    """Return the cells of a row under `HEADINGS`; what is not known is empty, and a reason stands under the numbers."""
    speed = "" if row.speed is None else describe_speed(row.speed)
    memory = "" if row.memory_bytes is None else format_bytes(row.memory_bytes)
    if row.memory_bytes is not None and today_bytes:
        memory += f" ({row.memory_bytes / today_bytes - 1:+.0%})"
    return (row.label, speed, memory, _numbers(row), _compiling(row))


def is_faster(row: Row) -> bool:
    """Whether its own rounds show a gain."""
    return row.reason is None and row.speed is not None and is_gain(row.speed.value, row.speed.low)


def lines_to_paste(chosen: Entry, rows: Sequence[Row]) -> list[str]:
    """Return the lines of all chosen changes."""
    return [line for row in rows if row.name in chosen for line in row.lines.splitlines()]


def memory_savers(rows: Sequence[Row], chosen: Entry, today_bytes: int | None) -> list[Row]:
    """Return the changes that take clearly less memory, train the same, and are not among the chosen."""
    if not today_bytes:
        return []
    return [
        row
        for row in rows
        if row.memory_bytes is not None
        and row.reason is None
        and row.name not in chosen
        and row.memory_bytes < LESS_MEMORY * today_bytes
        and (row.speed is None or row.speed.high >= 1.0)
    ]


def _numbers(row: Row) -> str:
    if row.numbers is None:
        return row.reason or ""
    same = _OTHER_DRAWS if row.draws_elsewhere and not row.numbers.is_offered else row.numbers.sameness.label
    difference = row.numbers.largest_difference
    shown = f"{same} ({difference:.1e})" if difference else same
    return f"{shown}: {row.reason}" if row.reason else shown


def _compiling(row: Row) -> str:
    if row.compile_seconds is None:
        return ""
    pays = f", pays after {row.pays_after_steps:,} steps" if row.pays_after_steps is not None else ""
    return f"{format_duration(row.compile_seconds)}{pays}"
