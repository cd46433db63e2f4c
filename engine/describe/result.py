"""PURE: a result in words: the answer in one short sentence with its notes, what is lost today, where the time went."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..facts.not_compared import NotCompared
from ..facts.result import Point, Purpose, Reason, RunResult, Timings
from ..facts.savings import describe_assumptions
from ..facts.speed_rounds import Stage
from ..facts.stats import NOISE_FRACTION
from ..race.speed.rounds import describe_notable_others
from ..text.today import name_today
from ..text.units import (
    format_bytes,
    format_duration,
    format_least_usd,
    format_most_usd,
    format_percent,
    sentence_case,
)
from .boundary import bound_of, in_a_fresh_process, is_today_refused
from .ranks import describe_grade, describe_group_of
from .reserve import notes_of_reserve, reserve_text
from .speed import KnownSpeed, others_of, speed_of, time_lost

GROWTH_REMEDY = (
    "Look for what is kept, as a loss with its graph or outputs of an evaluation; `memorymark watch` says when it ends."
)
WORDS_MOST = 17
"""Words of the leading sentence: more are not read in five seconds."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The sentence in three parts, so that a page can colour the recommended size, if there is one, and its notes."""

    before: str
    batch_size: int | None = None
    after: str = ""
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        return f"{self.before}{'' if self.batch_size is None else f'{self.batch_size:,}'}{self.after}"

    @property
    def text(self) -> str:
        return " ".join([self.sentence, *self.notes])


def is_short(sentence: str) -> bool:
    return len(sentence.split()) <= WORDS_MOST


def headline(result: RunResult, name: str) -> Answer:
    """Return the sentence that leads the result of a search or of a check, and its notes; `name` is the model's."""
    if result.spec.check_batch_size is not None:  # one size was run: there is nothing to choose
        return answer_of_check(result)
    return answer_of(result) if result.largest else Answer(f"{name} {why_nothing_fits(result)}")


def why_nothing_fits(result: RunResult) -> str:
    return {
        Reason.DOES_NOT_FIT: "does not fit: even batch 1 runs out of memory.",
        Reason.FOREIGN_MEMORY: "could not be measured: other programs held the memory.",
    }.get(result.boundary.reason, "was not measured to the end: no batch size finished.")


def answer_of_check(result: RunResult) -> Answer:
    """Return the answer of a check: "Batch 32 fits: it trained 5 steps in a fresh process.", and its memory."""
    size, boundary = result.spec.check_batch_size, result.boundary
    if result.fits is None:
        if boundary.reason is Reason.TIME_BUDGET:
            return Answer(f"Batch {size:,}: not known, because the time ended first.")
        return Answer(f"Batch {size:,}: not known.", notes=(f"{boundary.note or 'It was not run to its end'}.",))
    if not result.fits:
        why = "ran out of memory" if boundary.reason is Reason.ONE_SIZE else "hit a limit that is not memory"
        refusal = (f"{sentence_case(boundary.refusal.removesuffix('.'))}.",) if boundary.refusal else ()
        return Answer(f"Batch {size:,} does not fit: it {why} in a fresh process.", notes=refusal)
    used = result.largest.memory_bytes if result.largest else None
    took = () if used is None else (f"It took {format_bytes(used)} of {format_bytes(result.waste.capacity_bytes)}.",)
    return Answer(f"Batch {size:,} fits: it {in_a_fresh_process(result)}.", notes=took)


def answer_of(result: RunResult) -> Answer:
    """Return the answer where a size trained; for several ranks, the size per rank and the global batch."""
    answer, spec = _answer_of(result), result.spec.to_dict()
    size = answer.batch_size or result.boundary.largest_batch_size or 0
    if not (group := describe_group_of(spec, size)):
        return answer
    longer = replace(answer, after=f" per rank{answer.after}")
    leads = longer if answer.batch_size is not None and is_short(longer.sentence) else answer
    return replace(leads, notes=(f"The global batch is {group}.", *answer.notes))


def _answer_of(result: RunResult) -> Answer:
    """Write "Use batch size 56: 1.14x as fast as your 32 (...).", or how far the training reaches and why none."""
    if result.boundary.reason is Reason.GROWS:
        trained = f"{result.boundary.largest_batch_size:,} {in_a_fresh_process(result)}"
        sentence = f"No batch size is sure to last: {NotCompared.GROWS.sentence}."
        return Answer(sentence, notes=(f"{trained}.", GROWTH_REMEDY))
    size, today, known = result.recommended, result.current_batch_size, speed_of(result)
    if size is None:
        return _none_recommended(result, known)
    notes = (*known.notes, *_larger_sizes(result, size), *notes_of_reserve(result, size))
    refused = f"{sentence_case(name_today(today))} does not fit. " if is_today_refused(result) else ""
    verb = "Keep" if size.batch_size == today else "Use"
    return Answer(f"{refused}{verb} batch size ", size.batch_size, f": {known.said}.", notes)


def _larger_sizes(result: RunResult, chosen: Point) -> Iterator[str]:
    """Yield "No larger size that was timed (1,024 and 4,816) is shown to be more than 3 % faster."."""
    most = result.largest_with_reserve
    timed = {p.batch_size for p in result.probes if p.purpose is Purpose.TIMING and p.fits}
    larger = sorted(n for n in timed if most is not None and chosen.batch_size < n <= most.batch_size)
    if larger:
        sizes = f"{larger[0]:,} to {larger[-1]:,}" if len(larger) > 2 else " and ".join(f"{n:,}" for n in larger)
        yield f"No larger size that was timed ({sizes}) is shown to be more than {NOISE_FRACTION * 100:.0f} % faster."


def _none_recommended(result: RunResult, known: KnownSpeed) -> Answer:
    boundary, why, helps = result.boundary, known.said, [*known.notes]
    grade = describe_grade(result.spec.to_dict())
    reach = f"{bound_of(result)} {boundary.largest_batch_size or 0:,} fit{f' ({grade})' if grade else ''}"
    if (with_reserve := result.largest_with_reserve) is not None:
        is_open = not boundary.certified and with_reserve.batch_size == boundary.largest_batch_size
        size = f"{f'{bound_of(result)} ' if is_open else ''}{with_reserve.batch_size:,}"
        helps.append(f"The largest that keeps the reserve ({reserve_text(result)} free) is {size}.")
    because = f": {why}." if why else "."
    if is_today_refused(result):
        before = f"{sentence_case(name_today(result.current_batch_size))} does not fit; {reach}."
        return Answer(before, notes=(f"None is recommended{because}", *helps))
    sentence = f"{sentence_case(reach)}. None is recommended{because}"
    if is_short(sentence):
        return Answer(sentence, notes=tuple(helps))
    return Answer(f"{sentence_case(reach)}. None is recommended.", notes=(f"{sentence_case(why)}.", *helps))


def describe_known(result: RunResult) -> str:
    """Write "Up to 5,084 fit, certified. Unused at your 16: 231.3 MiB (90.4 %).", before speeds are compared."""
    reach = f"{sentence_case(bound_of(result))} {result.boundary.largest_batch_size or 0:,} fit"
    reach += ", certified." if result.boundary.certified else "."
    refused = f"{sentence_case(name_today(result.current_batch_size))} does not fit."
    return " ".join([reach, refused if is_today_refused(result) else _unused(result)]).rstrip()


def losses(result: RunResult) -> list[str]:
    return [*filter(None, [time_lost(result), _unused(result)])]


def _unused(result: RunResult) -> str:
    """Write "Unused at your 4: 624.0 MiB (60.9 %)."; empty where it was not measured."""
    unused, share = result.waste.at_current_bytes, result.waste.at_current_fraction
    if unused is None or share is None:
        return ""
    return f"Unused at {name_today(result.current_batch_size)}: {format_bytes(unused)} ({format_percent(share)})."


def speed_lines(result: RunResult) -> list[str]:
    """Return how the speeds were timed, and the savings with their interval and assumptions."""
    speed, known = result.speed, speed_of(result)
    if speed is None:
        return []
    lines = [_money(result)] if known.least is not None else []
    if speed.rounds:
        interval = f" ({speed.confidence:.0%} interval)" if known.interval else ""
        others = describe_notable_others(speed.others_cores, speed.cores) if not others_of(result) else None
        lines.append(f"Timed in {speed.rounds} rounds{interval}{f'; {others}' if others else ''}.")
    return lines


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


def describe_timing(result: RunResult) -> str:
    """Write "10 of 12 rounds in 24 s count, 8 of them quiet; ...": how the comparison of speeds went; empty without."""
    speed = result.speed
    if speed is None or format_duration(speed.seconds) == format_duration(0):
        return ""
    took, text = format_duration(speed.seconds), ""
    left_out = sum(each.stage is Stage.EVALUATION for each in result.speed_rounds) - speed.rounds
    if speed.rounds:
        counted = f"{speed.rounds} of {speed.rounds + left_out} rounds in {took} count"
        text = counted if left_out > 0 else f"{speed.rounds} rounds in {took}"
        text += f", {speed.quiet_rounds or 'none'} of them quiet" if speed.quiet_rounds < speed.rounds else ""
    text = text or f"The comparison of speeds took {took}"
    text += "; other programs ran beside the rest" if left_out > 0 else ""
    if speed.left_out_batch_sizes:
        sizes = ", ".join(f"{size:,}" for size in speed.left_out_batch_sizes)
        text += f". Not timed, because they did not fit together with the others: {sizes}"
    return f"{text}."


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


def time_by_part(result: RunResult) -> list[tuple[str, float]]:
    parts = [(name, seconds) for _, name, seconds in parts_of_time(result.timings)]
    return [*parts, ("Whole run", result.timings.total_seconds)]
