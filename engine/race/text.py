"""PURE: what a race found, as text: one headline, one table, the lines to paste."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from ..facts.intervals import Interval
from ..facts.result import Savings
from ..facts.savings import describe_assumptions
from ..facts.speed_rounds import SpeedClaim
from ..facts.stats import NOISE_FRACTION
from ..text.units import (
    format_bytes,
    format_duration,
    format_least_usd,
    format_most_usd,
    format_percent,
    format_usd,
    sentence_case,
)
from .field import Entry, RaceVerdict
from .numbers import Numbers
from .row import VariantRow
from .speed.claim import describe_lower_bound
from .speed.order import LEAST_RATIO
from .speed.rounds import describe_busy_rounds

HEADINGS = ("change", "speed", "memory", "numbers", "compiling")
FIGURES = (1, 2)
LESS_MEMORY = 0.98
"""A change whose peak is below this share of today's is said to save memory."""
_OTHER_DRAWS = "other random numbers"
LEAST_USD = 0.01
NO_GAIN = "No change that was tried makes this training faster by "
NOT_TOGETHER = "Nothing is recommended: the fastest combination does not train the same. See each change alone."
NONE_RACED = "No change for speed both applies here and trains the same."


def headline(found: RaceVerdict, *, lines: int, label: str, savings: Savings | None) -> str:
    """Write "1.90x [1.81, 2.02] as fast with 2 lines: AdamW, fused + TF32; saves $57 [$54, $61] a year."."""
    figure = sentence_case(describe_gain(found.claim, found.gain, found.rounds))
    saved = "" if savings is None else describe_saving(savings)
    money = f"; saves {saved} a year" if saved else ""
    return f"{figure} with {lines} line{'' if lines == 1 else 's'}: {label}{money}."


def describe_gain(claim: SpeedClaim, gain: Interval | None, rounds: int) -> str:
    """Write "1.90x [1.81, 2.02] as fast", "at least 1.3x as fast", or "faster in 10 of 10 rounds"."""
    if gain is None:
        return f"faster in {rounds} of {rounds} rounds"
    least = f"at least {describe_lower_bound(gain.low)}"
    return f"{least if claim is SpeedClaim.AT_LEAST else describe_speed(gain)} as fast"


def describe_saving(savings: Savings) -> str:
    """Write "$33.67 [$31.76, $35.49]", or "at least $31.76"; empty where less than a cent is sure to be saved."""
    value, low, high = savings.per_year_usd, savings.per_year_usd_low, savings.per_year_usd_high
    if low is None or high is None or low < LEAST_USD:
        return ""
    least, most = format_least_usd(low), format_most_usd(high)
    return f"at least {least}" if value is None else f"{format_usd(value)} [{least}, {most}]"


def describe_basis(savings: Savings) -> str:
    return f"The saving assumes {describe_assumptions(savings)}." if describe_saving(savings) else ""


def nothing_found(verdicts: Sequence[RaceVerdict]) -> str:
    is_open = [each for each in verdicts if each.claim is SpeedClaim.NOTHING]
    if not is_open:
        return f"{NO_GAIN}{max(each.least_gain for each in verdicts) * 100 - 100:.0f} % or more."
    if any(each.ended_early for each in is_open):
        return "Nothing is claimed: the time budget ended before the fastest change was compared with today's training."
    busy = [text for each in is_open if (text := describe_busy_rounds(each.rounds, each.quiet_rounds))]
    if busy:
        return f"Nothing is claimed: {busy[0]}. Try a quiet machine."
    return "Nothing is claimed: the speeds of the fastest change and of today's training vary too much here."


def describe_speed(speed: Interval) -> str:
    """Write "1.06x [1.04, 1.09]", the ends rounded outwards: no more is claimed than is known.

    >>> describe_speed(Interval(1.046, 1.06, 1.081))
    '1.06x [1.04, 1.09]'
    """
    low, high = math.floor(speed.low * 100 + 1e-9) / 100, math.ceil(speed.high * 100 - 1e-9) / 100
    return f"{speed.value:.2f}x [{low:.2f}, {high:.2f}]"


def speed_text(speed: Interval | None, rough_speed: float | None, verdict: RaceVerdict | None) -> str:
    """Write "1.06x [1.04, 1.09]", or "about 1.1x"; beside other programs the order alone; empty if not measured."""
    if speed is not None or rough_speed is None:
        return "" if speed is None else describe_speed(speed)
    if verdict is None or describe_busy_rounds(verdict.rounds, verdict.quiet_rounds) is None:
        return f"about {rough_speed:.1f}x"
    if rough_speed < 1 / LEAST_RATIO:
        return "slower"
    return "faster" if verdict.claim is SpeedClaim.AHEAD and rough_speed > LEAST_RATIO else "not known"


def describe_compiling(seconds: float, steps: int | None) -> str:
    """Write "33 s, pays after 400 steps"."""
    return f"{format_duration(seconds)}{'' if steps is None else f', pays after {steps:,} steps'}"


def pays_after(compile_seconds: float | None, speed: Interval | None, step_seconds: float | None) -> int | None:
    """Return the steps after which compiling is made up for; None where a step is not shown to be faster.

    >>> pays_after(30.0, Interval(1.4, 1.5, 1.6), 0.3)
    300
    """
    if compile_seconds is None or speed is None or step_seconds is None or speed.low <= 1:
        return None
    return math.ceil(round(compile_seconds / (step_seconds * (1 - 1 / speed.value)), 6))


def cells(row: VariantRow, today_bytes: int | None, verdict: RaceVerdict) -> tuple[str, ...]:
    """Return the cells of a row under `HEADINGS`; what is not known is empty, and a reason stands under the numbers."""
    memory = "" if row.memory_bytes is None else format_bytes(row.memory_bytes)
    if row.memory_bytes is not None and today_bytes:
        memory += f" ({(row.memory_bytes / today_bytes - 1) * 100:+.0f} %)"
    compiling = "" if row.compile_seconds is None else describe_compiling(row.compile_seconds, row.pays_after_steps)
    label = f"{row.label} (both with {' + '.join(row.beside)})" if row.beside else row.label
    return (label, speed_text(row.speed, row.rough_speed, verdict), memory, _numbers(row), compiling)


def lines_to_paste(chosen: Entry, rows: Sequence[VariantRow]) -> list[str]:
    return [line for row in rows if row.name in chosen for line in row.lines.splitlines()]


def memory_savers(
    rows: Sequence[VariantRow], chosen: Entry, today_bytes: int | None, *, of_memory_only: Collection[str]
) -> list[VariantRow]:
    """Return changes with clearly less memory that train the same and, unless `of_memory_only`, are as fast."""
    return [
        row
        for row in rows
        if row.memory_bytes is not None
        and row.reason is None
        and row.name not in chosen
        and row.memory_bytes < LESS_MEMORY * (today_bytes or 0)
        and (row.name in of_memory_only or _is_as_fast(row))
    ]


def _is_as_fast(row: VariantRow) -> bool:
    if row.speed is not None:
        return row.speed.high >= 1.0
    return row.rough_speed is not None and row.rough_speed >= 1 - NOISE_FRACTION


def describe_memory(memory_bytes: int, today_bytes: int) -> str:
    """Write "Memory: 5.1 MiB, today 6.8 MiB.", and that the largest batch size is another where they clearly differ."""
    again = " Search the largest batch size again with these lines."
    is_same = LESS_MEMORY <= memory_bytes / today_bytes <= 1 / LESS_MEMORY
    return f"Memory: {format_bytes(memory_bytes)}, today {format_bytes(today_bytes)}.{'' if is_same else again}"


def less_memory(row: VariantRow, today_bytes: int) -> str:
    """Write "Outputs released after each step: 44.4 % less memory."."""
    return f"{row.label}: {share_saved(row, today_bytes)} less memory."


def share_saved(row: VariantRow, today_bytes: int) -> str:
    return format_percent(1 - (row.memory_bytes or 0) / today_bytes)


def describe_numbers(numbers: Numbers, *, draws_elsewhere: bool = False) -> str:
    """Write "same within rounding (1.2e-04)": with the largest difference of a loss, where there is one."""
    same = _OTHER_DRAWS if draws_elsewhere and not numbers.is_offered else numbers.sameness.label
    return f"{same} ({numbers.largest_difference:.1e})" if numbers.largest_difference else same


def _numbers(row: VariantRow) -> str:
    if row.numbers is None:
        return row.reason or ""
    shown = describe_numbers(row.numbers, draws_elsewhere=row.draws_elsewhere)
    return f"{shown}: {row.reason}" if row.reason else shown
