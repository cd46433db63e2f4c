"""What the command line prints of a result; the form of the closing block is a published contract."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ...advice.document import advise, basis_of_result
from ...advice.text import short_lines
from ...describe.boundary import CPU_COUNTS_TENSORS, bound_of, certificate, is_today_refused, trains_with
from ...describe.does_not_fit import ways_to_fit
from ...describe.result import answer_of, answer_of_check, dollars, losses, parts_of_time, speed_lines
from ...describe.speed import NO_GAIN, NOT_KNOWN, speed_of
from ...facts.memory_breakdown import MemoryBreakdown, describe_entry, describe_moment
from ...facts.result import Point, Reason, RunResult, Timings
from ...facts.speed_rounds import SpeedClaim
from ...settings.spec import RunSpec
from ...text.units import GIB, format_bytes, format_least_usd
from .refused import change_lines_after
from .terminal import BOLD, LEAST_SECONDS, say, say_lines, width_of, wrapped

RULE, NOT_MEASURED = "=" * 60, "not measured"
ENTRIES_SHOWN = 3


def say_result(result: RunResult, more: Sequence[str] = ()) -> None:
    width = width_of(sys.stdout)
    say("")
    say("\n".join(wrapped(answer_lines(result), width, hanging="")), style=BOLD)
    say("\n".join(["", *wrapped([*details(result).splitlines(), *more], width), "", summary(result)]))


def summary(result: RunResult) -> str:
    """Return the summary of a run. Its format is a published contract (GB means GiB there)."""
    size, today = result.recommended, result.spec.current_batch_size
    lines = [
        RULE,
        f"■ MemoryMark Results - {result.spec.model.upper()} on {result.device.kind.upper()}",
        RULE,
        f"Optimal batch size: {size.batch_size if size else _why_none(result)}",
        f"Current batch size: {today}",
        f"Waste: {_waste(result)}",
        f"Speedup: {_speedup(result)}",
        f"Savings: {_savings(result)}",
        RULE,
    ]
    return "\n".join(lines)


def _speedup(result: RunResult) -> str:
    known = speed_of(result)
    if known.factor == NO_GAIN:
        return "1.0x"
    return known.factor if result.speedup is None else f"{result.speedup:.1f}x"


def _waste(result: RunResult) -> str:
    """Write "0.2GB (21.9%)" of the recommended size, or else "0.6GB (60.9%) at 4" of today's."""
    waste, at = result.waste, ""
    unused, share = waste.at_recommended_bytes, waste.at_recommended_fraction
    if result.recommended is None:
        unused, share = waste.at_current_bytes, waste.at_current_fraction
        at = f" at {result.current_batch_size}"
    return NOT_MEASURED if unused is None else f"{unused / GIB:.1f}GB ({share or 0.0:.1%}){at}"


def _why_none(result: RunResult) -> str:
    """Write "none recommended; up to 14 fit, 16 does not": the block is the last thing that is read."""
    if result.boundary.reason is Reason.DOES_NOT_FIT:
        return "none, does not fit at batch 1"
    if not result.boundary.largest_batch_size:
        return NOT_MEASURED
    refused = f", {result.current_batch_size} does not" if is_today_refused(result) else ""
    return f"none recommended; {bound_of(result)} {result.boundary.largest_batch_size} fit{refused}"


def _savings(result: RunResult) -> str:
    money, known = result.savings, speed_of(result)
    if known.factor == NO_GAIN:
        return "$0.00/run, $0.00/year"
    per_run, per_year = money.per_run_usd, money.per_year_usd
    if known.claim is SpeedClaim.AT_LEAST and money.per_run_usd_low is not None and money.per_year_usd_low is not None:
        return (
            f"at least {format_least_usd(money.per_run_usd_low)}/run, {format_least_usd(money.per_year_usd_low)}/year"
        )
    if per_run is None or per_year is None:
        return NOT_KNOWN
    return f"{dollars(per_run)}/run, {dollars(per_year)}/year"


def say_check(result: RunResult, more: Sequence[str] = ()) -> None:
    width = width_of(sys.stdout)
    say("\n".join(wrapped([answer_of_check(result).text], width, hanging="")), style=BOLD)
    say_lines(wrapped([*filled_lines(result.memory_breakdown), *change_lines_after(result), *more], width))


def answer_lines(result: RunResult) -> list[str]:
    if result.largest is None:
        return [certificate(result)]
    answer, reach = answer_of(result), f"{result.spec.model} {trains_with(result)}"
    where = f"{reach} in {format_bytes(result.waste.capacity_bytes)} of {result.device.name}."
    return [answer.sentence, " ".join([*losses(result), where, *answer.notes])]


def details(result: RunResult) -> str:
    small_print = [CPU_COUNTS_TENSORS] if result.device.kind == "cpu" else []
    certified = [certificate(result)] if result.largest else []  # else it is the answer
    lines = [*certified, *small_print, *filled_lines(result.memory_breakdown)]
    if result.boundary.reason is Reason.DOES_NOT_FIT:
        need, tries = ways_to_fit(result)
        lines += [need] if need else []
        lines += ["Ways to make it fit:", *(f"  {line}" for line in tries)] if tries else []
    lines += [*change_lines_after(result), *_estimated(result)]
    if result.boundary.note:
        lines.append(f"Note: {result.boundary.note}.")
    limit = result.waste.capacity_bytes
    points = (("Largest", result.largest), ("Fastest", result.fastest), ("Recommended", result.recommended))
    lines += [_point_line(name, point, limit) for name, point in points if point is not None]
    if (with_reserve := result.largest_with_reserve) is not None and with_reserve != result.recommended:
        lines.append(_point_line("With reserve", with_reserve, limit))
    spec, recommended = result.spec, result.recommended
    if isinstance(spec, RunSpec) and spec.accumulation_steps != 1 and recommended is not None:
        size, steps = recommended.batch_size, spec.accumulation_steps
        lines.append(f"An optimizer step: {steps} x {size} = {steps * size} samples.")  # speeds count all of them
    lines += speed_lines(result)
    if isinstance(spec, RunSpec) and result.recommended and (basis := basis_of_result(result)):
        lines += short_lines(advise(basis))
    return "\n".join([*lines, *_time_taken(result.timings)])


def _time_taken(timings: Timings) -> list[str]:
    """Write "Took 34.0 s in 7 processes: search 20.0 s, curve 14.0 s."; nothing where nothing was timed."""
    if timings.total_seconds < LEAST_SECONDS:
        return []
    took = f"Took {timings.total_seconds:.1f} s in {timings.processes} processes"
    spent = ", ".join(f"{word} {seconds:.1f} s" for word, _, seconds in parts_of_time(timings))
    return [f"{took}: {spent}." if spent else f"{took}."]


def filled_lines(breakdown: MemoryBreakdown | None) -> list[str]:
    if breakdown is None:
        return []
    largest = [f"  {describe_entry(entry, breakdown)}" for entry in breakdown.entries[:ENTRIES_SHOWN]]
    cached = breakdown.cached_bytes
    lost = [f"  {format_bytes(cached)} more are reserved and in pieces too small for it."] if cached else []
    heading = ["Most of it, by module:"] if largest else []
    return [describe_moment(breakdown), *heading, *largest, *lost]


def _estimated(result: RunResult) -> list[str]:
    """Write ``Estimated: largest 512; measured 508.`` with the error of its memory, where there was an estimate."""
    if result.estimate is None:
        return []
    measured = result.boundary.largest_batch_size
    text = f"Estimated: largest {result.estimate['largest_batch_size']}; measured {measured or 'none'}"
    error = result.estimate_error.peak if result.estimate_error else None
    return [f"{text}." if error is None else f"{text}. Error of its estimated memory: {error * 100:+.1f} %."]


def _point_line(name: str, point: Point, limit_bytes: int) -> str:
    memory = NOT_MEASURED if point.memory_bytes is None else format_bytes(point.memory_bytes, limit_bytes)
    speed = f"{point.samples_per_second:.1f} samples/s" if point.samples_per_second else ""
    if point.samples_per_second_low is not None and point.samples_per_second_high is not None:
        speed += f" [{point.samples_per_second_low:.1f}, {point.samples_per_second_high:.1f}]"
    return f"{name + ':':<13}{point.batch_size:>6}  {memory:>10}  {speed}".rstrip()
