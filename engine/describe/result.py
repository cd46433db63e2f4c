"""PURE: a result in words: the answer in one sentence with its notes, the speed-up, and where the time went.

A size is advised only where compared speeds recommend it. A lower bound comes with its interval and is never rounded
up. The largest size that keeps the reserve is called just that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ..results.result import Point, Purpose, Reason, RunResult, Speed, Timings
from ..results.savings import describe_assumptions
from ..results.speed_rounds import SpeedClaim
from ..results.stats import NOISE_FRACTION
from ..speed.claim import (
    ComparedSizes,
    compared_in,
    describe_bounds,
    describe_lower_bound,
)
from ..speed.reasons import LEFT_OUT, NOT_COMPARED
from ..speed.rounds import describe_disturbance, describe_others
from ..text.today import name_today, reword
from ..text.units import (
    format_bytes,
    format_factor,
    format_factor_range,
    format_least_usd,
    format_most_usd,
    format_percent,
    sentence_case,
)
from .answer import Answer, is_short
from .boundary import bound_of
from .grade import describe_grade
from .rank_peaks import describe_group_of


def claim_in(result: RunResult) -> SpeedClaim:
    """Return what is claimed of the speed-up; results of earlier builds claim a figure wherever there is one.

    A reported document may leave out the interval that its claim rests on: then nothing is claimed.
    """
    speed = result.speed
    if speed is None or speed.is_measurable:
        return SpeedClaim.FIGURE
    if speed.claim is SpeedClaim.AT_LEAST and None in (result.speedup_low, result.speedup_high):
        return SpeedClaim.NOTHING
    return speed.claim or SpeedClaim.NOTHING


def is_today_refused(result: RunResult) -> bool:
    """Whether today's size is known not to fit: it or a smaller one was refused. A missing figure is no proof."""
    refused = (probe.batch_size for probe in result.probes if not probe.fits)
    return result.current is None and min(refused, default=result.current_batch_size + 1) <= result.current_batch_size


def describe_known(result: RunResult) -> str:
    """Write "Up to 5,084 fit, certified. Unused at your 16: 231.3 MiB of 256.0 MiB (90.4 %).", before speeds."""
    reach = f"{sentence_case(bound_of(result))} {result.boundary.largest_batch_size or 0:,} fit"
    reach += ", certified." if result.boundary.certified else "."
    today, waste = name_today(result.current_batch_size), result.waste
    if is_today_refused(result):
        return f"{reach} {sentence_case(today)} does not fit."
    if waste.at_current_bytes is None or waste.at_current_fraction is None:
        return reach
    unused = f"{format_bytes(waste.at_current_bytes)} of {format_bytes(waste.capacity_bytes)}"
    return f"{reach} Unused at {today}: {unused} ({format_percent(waste.at_current_fraction)})."


def answer_of(result: RunResult) -> Answer:
    """Return the answer of a result in which a size trained; of ranks, whose size it is, and the global batch."""
    answer, spec = _answer_of(result), result.spec.to_dict()
    size = answer.batch_size or result.boundary.largest_batch_size or 0
    if not (group := describe_group_of(spec, size)):
        return answer
    longer = replace(answer, after=f" per rank{answer.after}")
    leads = longer if answer.batch_size is not None and is_short(longer.sentence) else answer
    return replace(leads, notes=(f"The global batch is {group}.", *answer.notes))


def _answer_of(result: RunResult) -> Answer:
    """Write "Use batch size 56: 1.14x as fast as your 32 (...).".

    Where no size is recommended it says how far the training reaches, and why none is.
    """
    size, today = result.recommended, result.current_batch_size
    if size is None:
        return _none_recommended(result)
    notes = (*_larger_sizes(result, size), *_notes_of_reserve(result, size))
    if size.batch_size == today:
        return Answer(f"Keep {name_today(today).rpartition(' ')[0]} ", today, f": {_why_kept(result, size)}.", notes)
    if claim_in(result) is SpeedClaim.AT_LEAST:
        assert result.speedup_low is not None
        faster = f": at least {describe_lower_bound(result.speedup_low)} as fast as {name_today(today)}."
        return Answer("Use batch size ", size.batch_size, faster, (_bounds(result), *notes))
    if claim_in(result) is SpeedClaim.AHEAD and result.speed is not None:
        return Answer("Use batch size ", size.batch_size, f": {describe_order(result)}.", (_how_much(result), *notes))
    if is_today_refused(result):
        why = f": {_no_other_is_faster(result, size)}."
        return Answer(f"{sentence_case(name_today(today))} does not fit. Use batch size ", size.batch_size, why, notes)
    if result.speedup is None:
        why = f": {_no_other_is_faster(result, size)}; {name_today(today)} was not measured."
        return Answer("Use batch size ", size.batch_size, why, notes)
    return Answer("Use batch size ", size.batch_size, f": {_figure(result)}.", notes)


def _why_kept(result: RunResult, kept: Point) -> str:
    if claim_in(result) is not SpeedClaim.NO_GAIN:
        return _no_other_is_faster(result, kept)
    found = compared(result)
    return f"{found.batch_size:,} is at most {found.high} as fast" if found else "no gain was found"


def _figure(result: RunResult) -> str:
    today, speedup = result.current_batch_size, result.speedup or 0.0
    interval = format_factor_range(result.speedup_low, result.speedup_high)
    return f"{format_factor(speedup)} as fast as {name_today(today)}{f' ({interval})' if interval else ''}"


def _bounds(result: RunResult) -> str:
    """Write "Measured 2.0 to 3.8x as fast; other programs ran in 9 of 12 rounds."."""
    assert result.speedup_low is not None
    assert result.speedup_high is not None
    bounds = f"Measured {describe_bounds(result.speedup_low, result.speedup_high)} as fast"
    return f"{'; '.join([bounds, *other_work(result)])}."


def describe_order(result: RunResult) -> str:
    """Write "faster than your 16 in 10 of 10 rounds"; only for a result that claims the order."""
    rounds = result.speed.rounds if result.speed else 0
    return f"faster than {name_today(result.current_batch_size)} in {rounds} of {rounds} rounds"


def _how_much(result: RunResult) -> str:
    """Say why there is no factor: other work slows small batches down more, by an amount that no round shows."""
    speed = result.speed
    if speed is None or speed.others_cores is None or not speed.cores:
        return "How much is not known: other programs slow small batches more."
    return f"How much is not known: {describe_others(speed.others_cores, speed.cores)} and slow small batches more."


def other_work(result: RunResult) -> Iterator[str]:
    """Yield "other programs ran in 9 of 12 rounds" where the timing counts as disturbed."""
    if result.speed is not None and (others := describe_disturbance(result.speed)):
        yield others


def is_disturbed(result: RunResult) -> bool:
    """Whether other programs disturbed the speeds so that nothing is claimed: on a CPU the factor itself is wrong."""
    speed = result.speed
    if speed is None or claim_in(result) is not SpeedClaim.NOTHING or result.device.kind != "cpu":
        return False
    # where one size was left to time there is no ratio, and so no reason
    is_of_timing = speed.rounds > 0 and (speed.reason is None or compared_in(speed.reason) is not None)
    return is_of_timing and any(other_work(result))


def _no_other_is_faster(result: RunResult, chosen: Point) -> str:
    """Say what was shown of the others: a command is timed at two sizes, and a faster one may lack the reserve."""
    timed = {p.batch_size for p in result.probes if p.purpose is Purpose.TIMING} - {chosen.batch_size}
    if result.fastest is None and len(timed) == 1:
        return f"{timed.pop():,} is not clearly faster"
    fastest = result.fastest if result.speed else None
    is_full = fastest is not None and fastest.batch_size != chosen.batch_size and not keeps_reserve(result, fastest)
    return f"no {'size with the reserve' if is_full else 'measured size'} is clearly faster"


def _larger_sizes(result: RunResult, chosen: Point) -> Iterator[str]:
    """Yield "No larger size that was timed (1,024 and 4,816) is shown to be more than 3 % faster."."""
    most = result.largest_with_reserve
    timed = {p.batch_size for p in result.probes if p.purpose is Purpose.TIMING and p.fits}
    larger = sorted(n for n in timed if most is not None and chosen.batch_size < n <= most.batch_size)
    if larger:
        sizes = f"{larger[0]:,} to {larger[-1]:,}" if len(larger) > 2 else " and ".join(f"{n:,}" for n in larger)
        yield f"No larger size that was timed ({sizes}) is shown to be more than {NOISE_FRACTION * 100:.0f} % faster."


def _none_recommended(result: RunResult) -> Answer:
    """Say how far it trains and why no size is recommended; the notes say what keeps the reserve, and what helps."""
    boundary, why, helps = result.boundary, _why_none(result), [*_what_helps(result)]
    grade = describe_grade(result.spec.to_dict())
    reach = f"{bound_of(result)} {boundary.largest_batch_size or 0:,} fit{f' ({grade})' if grade else ''}"
    if (with_reserve := result.largest_with_reserve) is not None:
        is_open = not boundary.certified and with_reserve.batch_size == boundary.largest_batch_size
        size = f"{f'{bound_of(result)} ' if is_open else ''}{with_reserve.batch_size:,}"
        helps.insert(0, f"The largest that keeps the reserve ({reserve_text(result)} free) is {size}.")
    because = f": {why}." if why else "."
    if is_today_refused(result):
        before = f"{sentence_case(name_today(result.current_batch_size))} does not fit; {reach}."
        return Answer(before, notes=(f"None is recommended{because}", *helps))
    sentence = f"{sentence_case(reach)}. None is recommended{because}"
    if is_short(sentence):
        return Answer(sentence, notes=tuple(helps))
    return Answer(f"{sentence_case(reach)}. None is recommended.", notes=(f"{sentence_case(why)}.", *helps))


def _why_none(result: RunResult) -> str:
    """Write "36 is 0.9 to 1.1x as fast as your 30", or another reason that is known; empty where none is."""
    reason = result.speed.reason if result.speed else None
    if result.boundary.reason is Reason.TIME_BUDGET:
        return "the time ended first"
    if reason in (NOT_COMPARED, LEFT_OUT):
        return "the speeds were not compared"
    if is_disturbed(result):
        return "other programs disturbed the timing"
    found = compared(result)
    if found is None:
        return reword(reason or "").removesuffix(".")
    return f"{found.batch_size:,} is {found.interval} as fast as {describe_other(found, result)}"


def compared(result: RunResult) -> ComparedSizes | None:
    """Return the two sizes of which no figure is claimed, with the bounds of their ratio; None where not known."""
    return None if is_disturbed(result) else compared_in(result.speed.reason if result.speed else None)


def was_compared(result: RunResult) -> bool:
    """Whether sizes were timed and said nothing, so that timing them again may."""
    return is_disturbed(result) or compared(result) is not None


def describe_other(found: ComparedSizes, result: RunResult) -> str:
    """Name today's size as such: "your 32"; another by its number."""
    return name_today(found.other) if found.other == result.current_batch_size else f"{found.other:,}"


def _what_helps(result: RunResult) -> Iterator[str]:
    if result.boundary.reason is Reason.TIME_BUDGET:
        yield "A longer time budget lets the search end, and the speeds be compared."
    elif "time budget" in ((result.speed.reason if result.speed else None) or ""):
        yield "A longer time budget lets the speeds be compared."
    elif is_disturbed(result):
        (work,) = other_work(result)
        yield f"{sentence_case(work)} and slow small batches down more: time again when the machine is quiet."
    elif compared(result) is not None:
        yield "The rounds of this run contradict each other: time again."


def _notes_of_reserve(result: RunResult, chosen: Point) -> Iterator[str]:
    """Yield "60 leaves 0.9 % of the memory free; 56 is the largest that leaves 5 %." where it leaves less."""
    if result.speed is None or chosen.memory_bytes is None or keeps_reserve(result, chosen):
        return
    left = max(1 - chosen.memory_bytes / result.waste.capacity_bytes, 0.0)
    other = result.largest_with_reserve
    which = f"{other.batch_size:,} is the largest that" if other else "no measured size"
    # never rounded up to the reserve
    shown = round(left, 3) if round(left, 3) < result.speed.reserve_fraction else math.floor(left * 1000) / 1000
    leaves = f"{chosen.batch_size:,} leaves {shown * 100:.1f} % of the memory free"
    yield f"{leaves}; {which} leaves {reserve_text(result)}."


def keeps_reserve(result: RunResult, point: Point) -> bool:
    """Whether a size leaves the requested reserve; false also where either is unknown."""
    if result.speed is None or point.memory_bytes is None:
        return False
    left = result.waste.capacity_bytes - point.memory_bytes
    return left >= result.waste.capacity_bytes * result.speed.reserve_fraction


def reserve_text(result: RunResult) -> str:
    """Write the requested reserve: "5 %"."""
    return f"{(result.speed.reserve_fraction if result.speed else 0.0) * 100:.4g} %"


def is_bound(result: RunResult) -> bool:
    """Whether only the least speed-up is claimed, and no figure."""
    return claim_in(result) is SpeedClaim.AT_LEAST


def is_same_speed(result: RunResult) -> bool:
    """Whether the interval of the speed-up includes 1: then no speed-up is claimed."""
    return result.speedup_low is not None and result.speedup_low <= 1 <= (result.speedup_high or 0)


def speedup_lines(result: RunResult) -> list[str]:
    """Return speed-up and savings with their intervals and assumptions, or the reason why there are none."""
    speed = result.speed
    if speed is None:
        return []
    is_said = is_bound(result) or is_disturbed(result) or claim_in(result) is SpeedClaim.AHEAD
    has_reason = speed.reason is not None and not is_said
    lines = [f"{sentence_case(reword(speed.reason or ''))}."] if has_reason else []
    if is_bound(result) or (speed.is_measurable and result.speedup is not None):
        lines += [_speedup(result, speed), _money(result)]
    if speed.rounds and speed.others_cores is not None and speed.cores:
        lines.append(f"While timing, {describe_others(speed.others_cores, speed.cores)}.")
    return lines


def _speedup(result: RunResult, speed: Speed) -> str:
    """Write "Speed-up: 1.39x [1.36, 1.42] over 16 (95% interval of 6 rounds)."; a bound with "at least"."""
    today, low, high = result.current_batch_size, result.speedup_low, result.speedup_high
    over = f"over {today} ({speed.confidence:.0%} interval of {speed.rounds} rounds)"
    if is_bound(result) and low is not None and high is not None:
        interval = describe_bounds(low, high).removesuffix("x").replace(" to ", ", ")
        return f"Speed-up: at least {describe_lower_bound(low)} [{interval}] {over}."
    if result.recommended is not None and result.recommended.batch_size == today:
        return f"Speed-up: none, {today} is the recommended size already."
    same = "the same speed, " if is_same_speed(result) else ""
    return f"Speed-up: {same}{result.speedup:.2f}x [{low:.2f}, {high:.2f}] {over}."


def _money(result: RunResult) -> str:
    """Write "Savings, assuming $0.60/h, 2 h a run, 100 runs a year: $33.67/year [$31.76, $35.49]."."""
    money = result.savings
    said = f"Savings, assuming {describe_assumptions(money)}"
    value, low, high = money.per_year_usd, money.per_year_usd_low, money.per_year_usd_high
    if low is None or high is None:
        return f"{said}: not measured."
    if value is None:
        least = format_least_usd(low)
        return f"{said}: at least {least}/year [{least}, {format_most_usd(high)}]."
    return f"{said}: {dollars(value)}/year [{dollars(low)}, {dollars(high)}]."


def dollars(amount: float) -> str:
    """Write "-$3.71": as programs read it, in ASCII and always with cents."""
    return f"-${-amount:.2f}" if round(amount, 2) < 0 else f"${abs(amount):.2f}"


_PARTS_OF_TIME = (
    ("import_seconds", "imports", "Imports"),
    ("model_seconds", "model", "Building the model"),
    ("estimate_seconds", "estimate", "Estimating first"),
    ("search_seconds", "search", "Search"),
    ("soak_seconds", "soak", "Soak run of the largest size"),
    ("curve_seconds", "curve", "Smaller sizes for the curve"),
    ("timing_seconds", "timing", "Comparing speed"),
    ("explaining_seconds", "what filled it", "Finding out what filled the memory"),
)


def parts_of_time(timings: Timings) -> list[tuple[str, str, float]]:
    """Return the parts of a run that took any time, in a word and in full, with their seconds."""
    took = ((word, name, float(getattr(timings, field))) for field, word, name in _PARTS_OF_TIME)
    return [part for part in took if f"{part[2]:.1f}" != "0.0"]
