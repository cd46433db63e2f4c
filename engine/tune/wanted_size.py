"""PURE: whether a training consumed the batch size that it was started with, and if not, what it did instead.

A size that the data cannot feed limits the search. One that the script ignores, rounds, divides or cuts into parts
proves nothing, and the error says which of these it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

from ..errors import CommandUntunable
from .reading import BY_LOADER, Reading, Step

AXES = (0, 1, BY_LOADER)
LEAST_FULL_STEPS = 2  # the second step of Adam holds more than the first
IGNORED = "batch_size_ignored"


def micro_batches_of(steps: Sequence[Step], batch_size: int) -> tuple[int, int] | None:
    """Return the batch's dimension and how many micro-batches of that size a step consumes; None where too few did.

    Only steps whose memory was read count, and of those not the short ones, as at the end of a data set. A gradient
    scaler may skip a step, which makes the next one look longer: the most frequent count. Where none occurs twice, as
    with an optimizer that calls a closure, the lowest. A few training loops put the batch in the second dimension.
    Where no dimension is the batch size, as with graphs, pairs or lists of images, the loader's rows are counted.
    """
    for axis in AXES:
        held = [count for step in steps if not step.is_timed and (count := step.holds(batch_size, axis))]
        if len(held) >= LEAST_FULL_STEPS:
            times = Counter(held)
            most = max(times.values())
            return axis, min(held) if most == 1 else max(count for count in times if times[count] == most)
    return None


def is_consumed_alike(steps: Sequence[Step], batch_size: int) -> bool:
    """Whether every watched step took the same: a training that caught a failure and went on took another step more.

    So what its card refused was caught below it, by torch: cuDNN asks for less memory then. Fewer rows may be what it
    went on with.
    """
    watched = [step for step in steps if not step.is_timed]
    alike = {(len(step.forwards), len(step.batches)) for step in watched}
    return len(alike) == 1 and any(
        all(step.holds(batch_size, axis) and not step.smaller(batch_size, axis) for step in watched) for axis in AXES
    )


def check_undivided(trained: Sequence[Reading], steps: Sequence[Sequence[Step]], batch_size: int) -> None:
    """Raise CommandUntunable where each rank was given its part of the size, and the data has more rows than that."""
    ranks = trained[0].world_size
    part = batch_size // ranks
    has_more = all(r.rows_of_a_pass != part for r in trained)
    if ranks > 1 and part and has_more and all(micro_batches_of(each, part) for each in steps):
        given = f"started with batch size {batch_size}, each of the {ranks} ranks was given {part}"
        remedy = f"write '{{batch_size*{ranks}}}', so that each rank is given the size"
        raise CommandUntunable(IGNORED, f"{given}: if the script divides its batch size by its ranks, {remedy}")


def end_of_data(
    trained: Sequence[Reading], steps: Sequence[Sequence[Step]], batch_size: int, honoured: Collection[int]
) -> tuple[str, int]:
    """Return why the data does not feed the wanted size, and the largest batch that it gave.

    Raises CommandUntunable where it is not the data: the training ignores, rounds or caps its size.
    """
    watched = [step for each in steps for step in each if not step.is_timed]
    seen = sorted(_rows_drawn(watched, batch_size) or {size for step in watched for size in step.seen()})
    largest = max(seen, default=0)
    what = f"started with batch size {batch_size}, the training was given {', '.join(map(str, seen)) or 'nothing'}"
    if not seen and not any(step.forwards for step in watched):
        raise CommandUntunable(
            IGNORED,
            f"{what}: no module ran in training mode. Call model.train() first; or, where a compiled function hides "
            "the modules that it calls, compile the module itself, by model.compile(), or leave compiling out here",
        )
    if any(step.is_timed and step.holds(batch_size, 0) for each in steps for step in each):
        raise CommandUntunable(
            IGNORED, f"{what}; after the steps whose memory was read it was: more --soak-steps read more"
        )
    sizes = [max(step.seen(), default=0) for step in steps[0]]
    if len(sizes) > 2 and all(a < b for a, b in pairwise(sizes)):
        raise CommandUntunable(
            IGNORED,
            f"{what}: its batches grow from step to step, as those of a replay buffer; fill it before the first",
        )
    if any((r.rows_of_a_pass or 0) > largest for r in trained):
        raise CommandUntunable(IGNORED, f"{what}: {_what_it_does(trained, seen, batch_size, honoured)}")
    if largest < batch_size and largest > max(honoured, default=largest):
        return f"{what}: the data has no more", largest
    raise CommandUntunable(IGNORED, what)


def _what_it_does(trained: Sequence[Reading], seen: Sequence[int], batch_size: int, honoured: Collection[int]) -> str:
    """Say what a script does with a size that its data could feed; `honoured` are other sizes that it trained with."""
    cards = trained[0].cards
    if cards > 1 and list(seen) == [batch_size * cards]:
        return f"nn.DataParallel divides its batches among {cards} GPUs: use --device cuda:0, or torchrun"
    parts = batch_size // seen[0] if len(seen) == 1 and batch_size % seen[0] == 0 else 1
    if parts > 1 and any(step.has_drawn(batch_size) for r in trained for step in r.steps()):
        cut = f"the script cuts its batches into {parts} parts"
        return f"{cut}: write '{{batch_size*{parts}}}', so that each part has the size"
    is_near = bool(seen) and batch_size < 2 * seen[-1] < 4 * batch_size
    if honoured or is_near:
        return "a pass has more rows, so the script rounds or limits its size; --sizes names those that it takes"
    return "it does not use that size; write {batch_size} where the script takes its own"


def _rows_drawn(steps: Sequence[Step], batch_size: int) -> set[int]:
    """Return how many rows the loaders drew, where the model is given something else: boxes, or the nodes of a graph.

    None where the loaders do not tell, drew what was wanted, or where each row is a batch that was made before.
    """
    drawn = {rows for step in steps for rows in step.drawn}
    known = {rows for rows in drawn if rows is not None}
    given = {size for step in steps for _, shape, _ in step.forwards for size in shape}
    return known if known == drawn and not known & {1, batch_size, *given} else set()
