"""PURE: whether a training consumed the batch size that it was started with, and if not, what it did instead.

A size that the data cannot feed limits the search. One that the script ignores, rounds, divides or cuts into parts
proves nothing, and the error says which of these it was. Rays become points, environments a minibatch of their steps,
tasks several calls: where what is given grows in exact proportion with a second size, the size is used, and each later
start has to hold to that, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ....errors import CommandUntunable
from ....search.allowed_sizes import BUDGETS
from ....text.own_words import error_name
from ..notes.reading import BUDGET, BY_LOADER, TOTAL, UNSEEN, Reading, Step
from ..sizes.next_start import SearchSoFar

AXES = (0, 1, BY_LOADER)
NO_ROWS = "no rows were seen in it: that it uses the batch size is shown by its memory alone, which rises with it"
LEAST_FULL_STEPS = 2  # the second step of Adam holds more than the first
IGNORED = "batch_size_ignored"
ACCUMULATES = (
    "in as many more calls, which take no more memory, so it accumulates that many; "
    "write {batch_size} where the size of one is set"
)
LEAST_BYTES_OF_A_CALL = 1024
NO_MODULE = (
    "functions alone show no size: put them in a torch.nn.Module, or draw the batches from a DataLoader; where a "
    "compiled function hides the modules that it calls, compile the module itself, by model.compile()"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """`rows` for each sample and `constant` more, in one of these dimensions; or a `budget` of tokens to be filled."""

    rows: int = 1
    constant: int = 0
    axes: tuple[int, ...] = AXES
    budget: str | None = None

    def given(self, batch_size: int) -> int:
        return self.rows * batch_size + self.constant

    def held(self, step: Step, batch_size: int) -> int:
        return max(step.holds(self.given(batch_size), axis) for axis in self.axes)

    def micro_batches(self, steps: Sequence[Step], batch_size: int) -> tuple[int, int] | None:
        """Return the batch's dimension and how many micro-batches a step consumes; None where too few did.

        Only steps whose memory was read count, and of those not the short ones, as at the end of a data set. A gradient
        scaler may skip a step, which makes the next one look longer: the most frequent count. Where none occurs twice,
        as with an optimizer that calls a closure, the lowest. A few training loops put the batch in the second
        dimension. Where no dimension is the batch size, as with graphs, pairs or lists of images, the loader's rows are
        counted.
        """
        watched = [step for step in steps if not step.is_timed]
        if self.axes != AXES and max((size for step in watched for size in self.seen(step)), default=0) > batch_size:
            return None
        for axis in self.axes:
            held = [count for step in watched if (count := step.holds(self.given(batch_size), axis))]
            if len(held) >= LEAST_FULL_STEPS:
                times = Counter(held)
                most = max(times.values())
                return axis, min(held) if most == 1 else max(count for count in times if times[count] == most)
        return None

    def seen(self, step: Step) -> set[int]:
        """Return the sizes that a step was given: where a sample is not one row, by the most rows."""
        if self.axes == AXES:
            return step.seen()
        most = max(step.most_given(self.axes[0]).values(), default=0)
        return {(most - self.constant) // self.rows}

    def describe(self) -> str | None:
        if self.budget:
            return (
                f"the batch size is a budget of {self.budget}, and batches were watched that fill it by more than half"
            )
        if self.axes == AXES:
            return None
        if UNSEEN in self.axes:
            return NO_ROWS
        more = f", with {self.constant:,} more beside them" if self.constant else ""
        calls = " in several calls" if TOTAL in self.axes else ""
        rows = f"{self.rows:,} row{'s' * (self.rows > 1)} of the model"
        return f"each sample of the batch size is {rows}{calls}{more}"


ONE_ROW = Unit()


def unit_given(sizes: str | None) -> Unit:
    return Unit(axes=(BUDGET,), budget=sizes) if sizes in BUDGETS else ONE_ROW


def unit_of(sizes: Mapping[int, Sequence[Reading]]) -> Unit | None:
    """Return the unit by which two starts of different sizes were given what they were; None where there is none.

    The rows of one call are looked at first, then those of all calls of a step.
    """
    (less, smaller), (more, larger) = sorted(sizes.items())
    for axis in (0, TOTAL):
        few, many = _most_given(smaller, axis), _most_given(larger, axis)
        for module in sorted(few.keys() & many.keys(), key=lambda each: -many[each]):
            rows, left = divmod(many[module] - few[module], more - less)
            unit = Unit(rows, few[module] - rows * less, (axis,))
            if left or rows < 1 or unit.constant < 0:
                continue
            counted = {unit.micro_batches(r.steps(), size) for size, readings in sizes.items() for r in readings}
            if len(counted) == 1 and None not in counted:
                return unit
    return None


def _watched(readings: Sequence[Reading]) -> list[Step]:
    return [step for r in readings for step in r.steps() if not step.is_timed]


def _most_given(readings: Sequence[Reading], axis: int) -> dict[int, int]:
    most: dict[int, int] = {}
    for step in _watched(readings):
        for module, rows in step.most_given(axis).items():
            most[module] = max(rows, most.get(module, 0))
    return most


class SizeUnclear(CommandUntunable):
    """One start does not show how the training uses its size; a start with another size may.

    `what` was seen; `least` is the size to start instead, where this one was a budget too small for one sample.
    """

    def __init__(self, what: str, why: str, least: int | None = None) -> None:
        super().__init__(IGNORED, f"{what}{why}")
        self.what, self.least = what, least


def is_consumed_alike(steps: Sequence[Step], batch_size: int, unit: Unit) -> bool:
    """Whether every watched step took the same: a training that caught a failure and went on took another step more.

    So what its card refused was caught below it, by torch: cuDNN asks for less memory then. Fewer rows may be what it
    went on with.
    """
    watched = [step for step in steps if not step.is_timed]
    alike = {(len(step.forwards), len(step.batches)) for step in watched}
    given = unit.given(batch_size)
    return len(alike) == 1 and any(
        all(step.holds(given, axis) and not step.smaller(given, axis) for step in watched) for axis in unit.axes
    )


def check_undivided(trained: Sequence[Reading], steps: Sequence[Sequence[Step]], batch_size: int) -> None:
    """Raise CommandUntunable where each rank was given its part of the size, and the data has more rows than that."""
    ranks = trained[0].world_size
    part = batch_size // ranks
    has_more = all(r.rows_of_a_pass != part for r in trained)
    if ranks > 1 and part and has_more and all(ONE_ROW.micro_batches(each, part) for each in steps):
        given = f"started with batch size {batch_size}, each of the {ranks} ranks was given {part}"
        remedy = f"write '{{batch_size*{ranks}}}', so that each rank is given the size"
        raise CommandUntunable(IGNORED, f"{given}: if the script divides its batch size by its ranks, {remedy}")


def end_of_data(
    trained: Sequence[Reading],
    steps: Sequence[Sequence[Step]],
    batch_size: int,
    honoured: Collection[int],
    unit: Unit,
    *,
    has_evaluated: bool,
) -> tuple[str, int]:
    """Return why the data does not feed the wanted size, and the largest batch that it gave.

    Raises CommandUntunable where it is not the data: the training ignores, rounds or caps its size; SizeUnclear where
    no other size has shown how it uses it.
    """
    watched = [step for each in steps for step in each if not step.is_timed]
    seen = sorted(_rows_drawn(watched, batch_size) or {size for step in watched for size in unit.seen(step)})
    largest = max(seen, default=0)
    what = f"started with batch size {batch_size}, the training was given {_listed(seen)}"
    if unit.budget:
        why = (
            f" {unit.budget}: a budget is never exceeded, and filled by more than half; "
            "--current-batch-size names one that the script trains with"
        )
        raise SizeUnclear(what, why, 2 * largest) if largest > batch_size else CommandUntunable(IGNORED, what + why)
    why = ""
    if not seen and not any(step.forwards for step in watched):
        why = f": no module ran in training mode; {'call model.train() first' if has_evaluated else NO_MODULE}"
        if has_evaluated:
            raise CommandUntunable(IGNORED, f"{what}{why}")
    if any(step.is_timed and step.holds(unit.given(batch_size), 0) for each in steps for step in each):
        raise CommandUntunable(
            IGNORED, f"{what}; after the steps whose memory was read it was: more --soak-steps read more"
        )
    sizes = [max(unit.seen(step), default=0) for step in steps[0]]
    if len(sizes) > 2 and sizes[0] < sizes[-1] and all(a <= b for a, b in pairwise(sizes)):
        raise CommandUntunable(
            IGNORED,
            f"{what}: its batches grow from step to step; --soak-steps reads the steps until a ramp has ended, "
            "and a replay buffer is filled before the first step",
        )
    cards = trained[0].cards
    is_for_cards = cards > 1 and seen == [batch_size * cards]
    if seen and any((r.rows_of_a_pass or 0) > largest for r in trained):
        of_cards = f"nn.DataParallel divides its batches among {cards} GPUs: use --device cuda:0, or torchrun"
        why = f": {of_cards if is_for_cards else _what_it_does(trained, seen, batch_size, honoured)}"
    elif batch_size > largest > max(honoured, default=largest):
        return f"{what}: the data has no more", largest
    if honoured or unit is not ONE_ROW or is_for_cards:
        raise CommandUntunable(IGNORED, f"{what}{why}")
    raise SizeUnclear(what, why)


def _listed(sizes: Collection[int]) -> str:
    return ", ".join(map(str, sizes)) or "nothing"


def _what_it_does(trained: Sequence[Reading], seen: Sequence[int], batch_size: int, honoured: Collection[int]) -> str:
    parts = _parts(trained, batch_size)
    if parts > 1 and any(step.has_drawn(batch_size) for r in trained for step in r.steps()):
        return _divided(parts, has_all=True)
    is_near = bool(seen) and batch_size < 2 * seen[-1] < 4 * batch_size
    if honoured or is_near:
        return "a pass has more rows, so the script rounds or limits its size; --sizes names those that it takes"
    return "it does not use that size; write {batch_size} where the script takes its own"


def _parts(trained: Sequence[Reading], batch_size: int) -> int:
    seen = _given(trained)
    part = seen[0] if len(seen) == 1 else 0
    return batch_size // part if part and batch_size % part == 0 else 1


def _divided(parts: int, has_all: bool) -> str:
    cut = f"the script cuts its batches into {parts} parts" if has_all else "the steps were given a part of the size"
    later = "" if has_all else "; where they grow later, more --soak-steps read on"
    return f"{cut}: write '{{batch_size*{parts}}}', so that each part has the size{later}"


def other_size(unclear: SizeUnclear, batch_size: int, so_far: SearchSoFar) -> int:
    """Return the size to start beside this one: half of it, which takes no more memory. Raises where there is none."""
    half, rule = batch_size // 2, so_far.allowed
    size: int | None = unclear.least or half or batch_size + 1
    if rule is not None and not unclear.least:
        size = rule.at_most(half) or rule.at_least(batch_size + 1)
    if so_far.most_trained or size is None or size > so_far.maximum:
        raise unclear
    return size


def unit_of_two(unclear: SizeUnclear, sizes: Mapping[int, Sequence[Reading]]) -> Unit:
    """Return what a sample is by two starts, the unclear one first. Raises CommandUntunable with what was seen."""
    (first, other), done = sizes, {size: [r for r in readings if r.is_done] for size, readings in sizes.items()}
    if not done[other]:
        failed = next((r.data["error_type"] for r in sizes[other] if r.has_failed), None)
        ended = f"ended with {error_name(failed)}" if failed else "made too few steps"
        raise CommandUntunable(IGNORED, f"{unclear}; batch size {other}, which was to tell more, {ended}")
    unit = unit_of(done)
    is_of_calls = unit is not None and TOTAL in unit.axes
    parts = {_parts(readings, size) for size, readings in done.items()}
    is_divided = len(parts) == 1 and parts != {1}
    if unit is not None and not (is_of_calls and (is_divided or not _takes_more(done))):
        return unit
    given = [_given(readings) for readings in done.values()]
    if not any(given) and _takes_more(done):
        return Unit(axes=(UNSEEN,))
    is_used = given[0] != given[1] and all(ONE_ROW.micro_batches(r.steps(), other) for r in done[other])
    if unit is None and not is_divided and is_used:
        return ONE_ROW
    what = f"started with batch size {first}, the training was given {_listed(given[0])}"
    why = _divided(max(parts), is_of_calls) if is_divided else ACCUMULATES if is_of_calls else _why_unclear(*given)
    raise CommandUntunable(IGNORED, f"{what}, and {_listed(given[1])} with {other}: {why}")


def _why_unclear(first: Sequence[int], other: Sequence[int]) -> str:
    if not first and not other:
        return f"no tensor, list of texts or object with tensors, nor does its memory rise with the size; {NO_MODULE}"
    if max(len(first), len(other)) > 1:
        return "if the size counts no rows but tokens, nodes, frames or points, add --sizes tokens"
    if first == other:
        return "its model's batches do not follow that size; write {batch_size} where the script sets theirs"
    return "that does not follow the size; --sizes names those that the script takes, where it rounds others"


def _given(readings: Sequence[Reading]) -> list[int]:
    return sorted({size for step in _watched(readings) for size in step.seen()})


def _takes_more(sizes: Mapping[int, Sequence[Reading]]) -> bool:
    """Whether the calls that the larger size makes more take memory, and not only that of a number that each gives."""
    smaller, larger = (sizes[size] for size in sorted(sizes))
    more, fewer = (max(len(step.forwards) for step in _watched(each)) for each in (larger, smaller))
    calls = more - fewer
    return _most_bytes(larger) - _most_bytes(smaller) > LEAST_BYTES_OF_A_CALL * max(calls, 1)


def _most_bytes(readings: Sequence[Reading]) -> int:
    """Return the peak outside the optimizer's own step, which may be the highest."""
    found = [memory for r in readings if (memory := r.memory()) is not None]
    return max((m.batch_peak_bytes or m.peak_bytes for m in found), default=0)


def _rows_drawn(steps: Sequence[Step], batch_size: int) -> set[int]:
    """Return how many rows the loaders drew, where the model is given something else: boxes, or the nodes of a graph.

    None where the loaders do not tell, drew what was wanted, or where each row is a batch that was made before.
    """
    drawn = {rows for step in steps for rows in step.drawn}
    known = {rows for rows in drawn if rows is not None}
    given = {size for step in steps for each in step.forwards for size in each.shape}
    return known if known == drawn and not known & {1, batch_size, *given} else set()
