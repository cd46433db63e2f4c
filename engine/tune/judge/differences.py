"""PURE: how the steps of one start differed: in what they were given, and in what they took; and two sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ...errors import CommandUntunable
from ...results.result import Boundary, Probe
from ...search.stillness import Watched, has_fallen, is_rising, last_rise
from ...text.units import format_bytes
from .batch_size import Unit
from .memory import Memory
from .observed import Observed
from .reading import Reading, Shapes, Step

MEMORY_VARIES = "memory_varies"
CLEAR_FALL = 0.01


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
