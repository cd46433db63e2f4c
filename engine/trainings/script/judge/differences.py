"""PURE: how the steps of one start differed, in what they were given and took, and how a result says that."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ....errors import CommandUntunable
from ....facts.result import Boundary, Probe
from ....search.stillness import Watched, has_fallen, is_rising, last_rise
from ....text.units import format_bytes
from ..notes.memory import Memory
from ..notes.reading import Reading, Shapes, Step
from ..notes.whole_run import Unseen
from .batch_size import Unit

MEMORY_VARIES = "memory_varies"
CLEAR_FALL = 0.01
MUCH = 0.02
UNKNOWN_PASS_STEPS = 1_000
LONGEST, FIXED = ": --whole-run trains the longest", ": the largest alone, at every step, tells more"
"""What helps where batches differ: by the rows of the data, or by what the loop draws."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the start of the largest size showed, and why a later step may take more than those that were watched.

    Where inputs differed, one of the first three is known: the least and most of their `lengths`, of their
    `dimensions` (by their numbers), or of the memory of steps whose inputs had the same shapes.
    """

    lengths: tuple[int, int] | None = None
    has_items: bool = False
    """Whether these are numbers of items, as of a graph's nodes."""
    dimensions: tuple[int, ...] = ()
    dimension_sizes: tuple[int, int] = (0, 0)
    is_drawn_in_loop: bool = False
    """Whether it was no loader that gave the inputs their sizes."""
    step_bytes: tuple[int, int] | None = None
    steps_until_rise: int | None = None
    """The steps of which a late one took more than all before it."""
    growth_bytes: int = 0
    """What each step left behind."""
    kept_by_evaluation_bytes: int = 0
    """What each batch of an evaluation left behind that was not watched to its end."""
    evaluation_end_bytes: int = 0
    """What that evaluation holds at its end, if this goes on; 0: not known."""
    idle_optimizers: int = 0
    refused_allocations: int = 0
    only_read_bytes: int = 0
    """What was there on a CPU beside the peak; 0 where it is little."""
    refused_late: tuple[int, int] | None = None
    """A size, and the late step in which alone it ran out of memory."""
    refused_in_evaluation: int | None = None
    """A size that ran out of memory in an evaluation, to which the largest had not come."""
    is_varied: bool = False
    """Whether a start that is repeated may take other memory."""

    @property
    def may_take_more(self) -> bool:
        return replace(self, only_read_bytes=0) != Observed()

    def does_grow(self, peak_bytes: int, unseen: Unseen | None, micro_batches: int) -> bool:
        """Whether what each step leaves behind is much of the peak by the end of a pass over the data.

        Inputs that differ may rise by chance for a few steps, or because they are sorted.
        """
        if self.lengths or self.dimensions:
            return False
        batches = unseen.pass_batches if unseen is not None else None
        steps = batches / max(micro_batches, 1) if batches else UNKNOWN_PASS_STEPS
        return is_much(self.growth_bytes * steps, peak_bytes)

    def _evaluation_end(self) -> str:
        if self.evaluation_end_bytes:
            return f"if that goes on, it holds about {format_bytes(self.evaluation_end_bytes)} at its end"
        return "an evaluation of many batches takes more than the few that were watched"

    def describe(self, largest: int, *, is_whole_run: bool) -> Iterator[str]:
        """Yield the sentences that a result notes; `is_whole_run`: the longest were among what was trained."""
        remedy = "" if is_whole_run else LONGEST
        if self.lengths is not None:
            what, larger = ("items large", "larger") if self.has_items else ("long", "longer")
            of = "the batches that were watched were {} to {}".format(*self.lengths)
            yield f"{of} {what}, and a {larger} one takes more memory{remedy}"
        if self.dimensions:
            numbers = " and ".join(map(str, self.dimensions))
            of = "of the inputs that were watched dimension {} was {} to {}".format(numbers, *self.dimension_sizes)
            yield f"{of}, and a larger one takes more memory{FIXED if self.is_drawn_in_loop else remedy}"
        if self.step_bytes is not None:
            least, most = map(format_bytes, self.step_bytes)
            yield (
                f"the steps that were watched took {least} to {most}, although their inputs had the same shapes: "
                "a later one may take more"
            )
        if self.steps_until_rise is not None:
            yield (
                f"of {self.steps_until_rise} steps that were watched a late one took more than all before it: "
                "later ones may, too"
            )
        if self.growth_bytes:
            yield (
                f"each step left {format_bytes(self.growth_bytes)} more behind than the one before: "
                "if that goes on, the training runs out of memory later"
            )
        if self.kept_by_evaluation_bytes:
            yield (
                f"each batch of the evaluation left about {format_bytes(self.kept_by_evaluation_bytes)} behind: "
                f"{self._evaluation_end()}"
            )
        if self.idle_optimizers:
            yield (
                f"{self.idle_optimizers} of the optimizers had made no step yet: "
                "once all do, the training may take more memory"
            )
        if self.refused_allocations:
            several = "allocation" if self.refused_allocations == 1 else "allocations"
            yield (
                f"the card refused {self.refused_allocations} {several}, and torch went on with less: "
                "its steps may be slower for it"
            )
        if self.only_read_bytes:
            yield (
                f"{format_bytes(self.only_read_bytes)} of tensors that the training only reads were there before it: "
                "they were taken for data and do not count"
            )
        if self.refused_late is not None:
            yield (
                "{} ran out of memory in its step {}, where a stage of the training may have begun: "
                "smaller ones may come to it later"
            ).format(*self.refused_late)
        if self.refused_in_evaluation is not None:
            yield (
                f"{self.refused_in_evaluation} ran out of memory in an evaluation, to which {largest} had not come: "
                "--whole-run goes on to it"
            )


def is_much(size: float, peak_bytes: int) -> bool:
    """Whether it is more of the peak than two ways to count it may differ by.

    >>> is_much(2, 100), is_much(3, 100)
    (False, True)
    """
    return size > MUCH * peak_bytes


def differences_of(
    trained: Sequence[Reading],
    steps: Sequence[Sequence[Step]],
    memory: Memory,
    unit: Unit,
    batch_size: int,
    axis: int,
    micro_batches: int,
) -> tuple[Observed, Watched]:
    """Return how the read steps differed, for notes and the search; peaks of several ranks differ by exchange alone."""
    first, read = trained[0], [step for step in steps[0] if not step.is_timed]
    wanted = unit.given(batch_size)
    full = [number for number, step in enumerate(read) if step.holds(wanted, axis) == micro_batches]
    peaks = list(memory.step_peaks.get(first.slowest, ())) if first.processes == 1 else []
    of_full = [peaks[number] for number in full if number < len(peaks)]
    lengths = [step.lengths(wanted, axis) for each in steps for step in each if not step.is_timed]
    longest = [max(each) for each in lengths if each]
    given, loaded = (_ranges([of(read[number]) for number in full]) for of in (Step.shapes_given, Step.shapes_loaded))
    has_varied = has_fallen(of_full)
    if (are_alike := _are_rows_alike(first.whole_run)) is not None:  # the largest were among those that were trained
        longest, loaded = [], {}
        has_varied, given = has_varied and are_alike, given if are_alike else {}
    observed = Observed()
    if len({*longest}) > 1:
        observed = Observed(lengths=(min(longest), max(longest)), has_items=axis < 0)
    elif given:
        widest = max(given.values(), key=lambda each: each[1] - each[0])
        alike = tuple(number for number, sizes in given.items() if sizes == widest)
        observed = Observed(dimensions=alike, dimension_sizes=widest, is_drawn_in_loop=not loaded)
    elif has_varied:
        observed = Observed(step_bytes=(min(of_full[1:]), max(of_full[1:])))
    if is_rising(peaks) and not (first.whole_run or {}).get("is_to_its_end"):
        observed = replace(observed, steps_until_rise=len(peaks))
    seconds = (read[-1].ended_at - read[0].ended_at) / (len(read) - 1) if len(read) > 1 else 0.0
    is_varied = has_varied or bool(given) or len({*longest}) > 1
    inputs = _inputs(read[full[-1]], axis) if full and axis >= 0 and first.whole_run is None else ()
    watched = Watched(batch_size, len(read), seconds, is_varied, is_rising(peaks), last_rise(peaks), inputs)
    return observed, watched


def refused_late(watched: Sequence[Watched], boundary: Boundary) -> tuple[int, int] | None:
    """Return the next size and its step, where that alone rose: a stage begins that the largest has not come to."""
    sizes = {each.batch_size: each for each in watched}
    largest, refused = sizes.get(boundary.largest_batch_size or 0), sizes.get(boundary.refused_batch_size or 0)
    if largest is None or refused is None or not refused.is_rising or 2 * largest.rose_at > refused.rose_at:
        return None
    return refused.batch_size, refused.rose_at


def is_in_evaluation(probe: Probe, evaluated: Collection[int]) -> bool:
    """Whether the peak of a size is of no step, and an evaluation ran while its memory was read."""
    return probe.batch_size in evaluated and probe.peak_phase is None and probe.failed_phase is None


def refused_in_evaluation(boundary: Boundary, probes: Sequence[Probe], evaluated: Collection[int]) -> int | None:
    """Return the size for which an evaluation was too large that the largest has not come to: nothing is certified."""
    largest, refused = boundary.largest_batch_size or 0, boundary.refused_batch_size or 0
    of_a_step = {p.batch_size for p in probes if p.failed_phase is not None}
    sizes = {p.batch_size for p in probes if not p.fits and is_in_evaluation(p, evaluated)} - of_a_step
    known = min((size for size in sizes if size <= refused), default=None)
    return None if largest in evaluated or not boundary.certified else known


def _are_rows_alike(whole_run: Mapping[str, Any] | None) -> bool | None:
    """Return whether the rows of a training have one size; None where no whole run looked them through."""
    data = [each for each in whole_run["data"] if each.get("is_trained")] if whole_run is not None else []
    if not data or not all(each["looked"] and not each["is_text"] for each in data):
        return None
    return all(each.get("largest") == each.get("smallest") for each in data)


def _inputs(step: Step, axis: int) -> tuple[int, ...]:
    """Return the shape that the largest module was given, without the batch's dimension."""
    first = next((shapes[0] for shapes in step.shapes_given().values() if shapes), ())
    return (*first[:axis], *first[axis + 1 :])


def _ranges(steps: Sequence[Mapping[Any, Shapes]]) -> dict[int, tuple[int, int]]:
    """Return least and most of each dimension of the first tensor that varied; of several calls the largest."""
    for kind in steps[0] if steps else ():
        shapes = [each[kind] for each in steps if kind in each]
        for tensor in zip(*shapes, strict=False):
            found = {}
            for dimension, sizes in enumerate(zip(*tensor, strict=False), 1):
                if min(sizes) < max(sizes):
                    found[dimension] = (min(sizes), max(sizes))
            if found:
                return found
    return {}


def check_memory_rises(peaks: Mapping[int, int], *, shows_size: bool = False) -> None:
    """Raise CommandUntunable where the peak of a batch size is clearly below that of a smaller one.

    For peaks counted by the allocator's own events. Where they differ from start to start, or with what is computed,
    two neighbouring sizes prove no boundary. Where the peak alone `shows_size`, one of twice the size has to be higher.
    """
    for (smaller, more), (larger, fewer) in pairwise(sorted(peaks.items())):
        if fewer < more * (1 - CLEAR_FALL) or (shows_size and larger >= 2 * smaller and fewer <= more):
            raise CommandUntunable(
                MEMORY_VARIES,
                f"batch {smaller} took {format_bytes(more)} and batch {larger} {format_bytes(fewer)}: "
                "the memory of this command does not rise with its batch size alone",
            )
