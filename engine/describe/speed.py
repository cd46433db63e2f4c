"""PURE: what is known of the speed of a result, in the one phrase that command line, pages, API and mail repeat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..facts.not_compared import NotCompared
from ..facts.result import Point, Purpose, Reason, RunResult
from ..facts.speed_rounds import ComparedSizes, SpeedClaim
from ..race.speed.claim import describe_bounds, describe_lower_bound, is_gain
from ..race.speed.rounds import describe_busy_rounds, describe_notable_others
from ..text.today import name_today
from ..text.units import format_factor, format_factor_range, sentence_case
from .boundary import is_today_refused
from .reserve import keeps_reserve

NOT_KNOWN, NO_GAIN = "not known", "no gain"
FASTER = "faster"
"""The factor where only the order is known."""


@dataclass(frozen=True, slots=True)
class KnownSpeed:
    """What is known of the recommended size against today's, and where none is recommended, why.

    `said` follows "Use batch size 8: ", and stands in the API as `speed.reason` where no figure is claimed. `factor` is
    the same in a cell: "1.39x", "at least 2x", "faster", "no gain", "not known". `least` is the figure or lower bound
    of a gain. `notes` say how sure it is, or what helps.
    """

    claim: SpeedClaim
    said: str
    factor: str = NOT_KNOWN
    interval: str = ""
    least: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_gain(self) -> bool:
        return self.least is not None or self.factor == FASTER


def speed_of(result: RunResult) -> KnownSpeed:
    claim, size, today = claim_in(result), result.recommended, name_today(result.current_batch_size)
    if size is None:
        found = compared(result)
        interval = describe_bounds(found.low, found.high) if found else ""
        return KnownSpeed(claim, _why_none(result), interval=interval, notes=tuple(_what_helps(result)))
    if size.batch_size == result.current_batch_size:
        found = compared(result) if claim is SpeedClaim.NO_GAIN else None
        said = _describe_sizes(found, size.batch_size) if found else _no_other_is_faster(result, size)
        others = others_of(result) if claim is SpeedClaim.NO_GAIN and result.device.kind == "cpu" else ""
        note = f"A smaller gain shows on a quiet machine: {others}."
        return KnownSpeed(claim, said, NO_GAIN, notes=(note,) if others else ())
    if claim is SpeedClaim.AHEAD:
        return _ahead(result, today)
    if claim is SpeedClaim.AT_LEAST:
        return _at_least(result, today)
    if is_today_refused(result) or result.speedup is None:
        open_ = "" if is_today_refused(result) else f"; {today} was not measured"
        return KnownSpeed(claim, f"{_no_other_is_faster(result, size)}{open_}")
    factor, interval = format_factor(result.speedup), format_factor_range(result.speedup_low, result.speedup_high)
    said = f"{factor} as fast as {today}{f' ({interval})' if interval else ''}"
    least = result.speedup if is_gain(result.speedup, result.speedup_low) else None
    return KnownSpeed(claim, said, factor, interval, least)


def claim_in(result: RunResult) -> SpeedClaim:
    """Return what is claimed; of earlier builds a figure if any, and nothing where a document lacks its interval."""
    speed = result.speed
    if speed is None or speed.is_measurable:
        return SpeedClaim.FIGURE
    if speed.claim is SpeedClaim.AT_LEAST and None in (result.speedup_low, result.speedup_high):
        return SpeedClaim.NOTHING
    return speed.claim


def compared(result: RunResult) -> ComparedSizes | None:
    """Return the two sizes of which no figure is claimed, with the bounds of their ratio; None where not known."""
    return None if is_disturbed(result) or result.speed is None else result.speed.compared


def _describe_sizes(sizes: ComparedSizes, today: int) -> str:
    """Write "30 is 0.8 to 13x as fast as your 4"."""
    other = name_today(today) if sizes.other == today else f"{sizes.other:,}"
    return f"{sizes.batch_size:,} is {describe_bounds(sizes.low, sizes.high)} as fast as {other}"


def was_compared(result: RunResult) -> bool:
    """Whether sizes were timed and said nothing, so that timing them again may."""
    return is_disturbed(result) or compared(result) is not None


def is_disturbed(result: RunResult) -> bool:
    """Whether other programs disturbed the speeds so that nothing is claimed: on a CPU the factor itself is wrong."""
    speed = result.speed
    if speed is None or claim_in(result) is not SpeedClaim.NOTHING or result.device.kind != "cpu":
        return False
    # where one size was left to time there is no ratio, and so no reason
    is_of_timing = speed.why is None or speed.compared is not None
    return speed.rounds > 0 and is_of_timing and describe_busy_rounds(speed.rounds, speed.quiet_rounds) is not None


def others_of(result: RunResult) -> str:
    """Write "other programs used 1.3 of 2 cores"; empty where they did not disturb the timing."""
    speed = result.speed
    if speed is None or (disturbed := describe_busy_rounds(speed.rounds, speed.quiet_rounds)) is None:
        return ""
    return describe_notable_others(speed.others_cores, speed.cores) or disturbed


def stated_reason(result: RunResult) -> str | None:
    """Return why no figure is claimed, as a new result states it; a reason that compares no sizes stays as it is."""
    speed = result.speed
    if speed is None or speed.compared is None:
        return speed.reason if speed else None
    return speed_of(result).said


def _ahead(result: RunResult, today: str) -> KnownSpeed:
    rounds = result.speed.rounds if result.speed else 0
    why = f"How much is not known: {others_of(result) or 'other programs ran'} and slow small batches more."
    return KnownSpeed(SpeedClaim.AHEAD, f"faster than {today} in {rounds} of {rounds} rounds", FASTER, notes=(why,))


def _at_least(result: RunResult, today: str) -> KnownSpeed:
    low, high = result.speedup_low or 0.0, result.speedup_high or 0.0
    factor, bounds = f"at least {describe_lower_bound(low)}", describe_bounds(low, high)
    others = others_of(result)
    note = f"Measured {bounds} as fast{f'; {others}' if others else ''}."
    return KnownSpeed(SpeedClaim.AT_LEAST, f"{factor} as fast as {today}", factor, bounds, low, (note,))


def _no_other_is_faster(result: RunResult, chosen: Point) -> str:
    """Say what was shown of the others: a command is timed at two sizes, and a faster one may lack the reserve."""
    timed = {p.batch_size for p in result.probes if p.purpose is Purpose.TIMING} - {chosen.batch_size}
    if result.fastest is None and len(timed) == 1:
        return f"{timed.pop():,} is not clearly faster"
    fastest = result.fastest if result.speed else None
    is_full = fastest is not None and fastest.batch_size != chosen.batch_size and not keeps_reserve(result, fastest)
    return f"no {'size with the reserve' if is_full else 'measured size'} is clearly faster"


def _why_none(result: RunResult) -> str:
    why = result.speed.why if result.speed else None
    if why in (NotCompared.STARTS_APART, NotCompared.LEFT_OUT):
        return "the speeds were not compared"
    if is_disturbed(result):
        return others_of(result)
    if found := compared(result):
        return _describe_sizes(found, result.current_batch_size)
    if why is not None:
        return why.describe(result.current_batch_size)
    reason = result.speed.reason if result.speed else None  # of an earlier build
    is_cut = reason is None and result.boundary.reason is Reason.TIME_BUDGET
    return "the time ended first" if is_cut else (reason or "").removesuffix(".")


def _what_helps(result: RunResult) -> Iterator[str]:
    if result.boundary.reason is Reason.TIME_BUDGET:
        yield "A longer time budget lets the search end, and the speeds be compared."
    elif result.speed and result.speed.why is NotCompared.TIME_ENDED:
        yield "A longer time budget lets the speeds be compared."
    elif is_disturbed(result):
        yield "Load slows small batches more: time again when the machine is quiet."
    elif claim_in(result) is SpeedClaim.NOTHING and compared(result):
        yield "The rounds of this run do not decide: time again."


def time_lost(result: RunResult) -> str:
    """Write "Your 4 trains an epoch in at least 2 times the time of 8."; empty where no gain is known."""
    known, size = speed_of(result), result.recommended
    if known.least is None or size is None:
        return ""
    today, times = sentence_case(name_today(result.current_batch_size)), known.factor.removesuffix("x")
    return f"{today} trains an epoch in {times} times the time of {size.batch_size:,}."
