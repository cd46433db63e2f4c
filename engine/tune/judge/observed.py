"""PURE: what the starts of a training showed of it beside their figures, and how a result says that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...text.units import format_bytes

MUCH = 0.02
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
                "an evaluation of many batches takes more than the few that were watched"
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


def is_much(size: int, peak_bytes: int) -> bool:
    """Whether it is more of the peak than two ways to count it may differ by.

    >>> is_much(2, 100), is_much(3, 100)
    (False, True)
    """
    return size > MUCH * peak_bytes
