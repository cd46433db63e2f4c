"""PURE: what a whole run saw of the data and the script, and what it did not see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ....facts.progress import TRAINING_PHASES
from ....text.from_json import from_json
from ....text.units import format_bytes
from .memory import LATER_STEP

DATA_NAMED = 4
PROBLEMS = (
    "a row has another size each time",
    "its rows have no size: the loader makes each batch of them",
    "its rows come one after the other",
    "a batch sampler of its own chooses the rows",
)
"""Why a data set is not looked through, where no error is the cause."""
NO_LARGEST_BATCH = "no batch could be made of its largest rows"
_ERROR = re.compile(rf"({NO_LARGEST_BATCH}: )?([A-Za-z_]\w{{0,39}}): .*", re.ASCII | re.DOTALL)
_BESIDE_STEPS = {"evaluation": "the evaluation", "checkpoint": "saving a checkpoint", LATER_STEP: "a later step"}


@dataclass(frozen=True, slots=True)
class Unseen:
    """What first steps show of the rest, as the hook notes it; `steps_of_a_pass` were watched in a further start."""

    pass_batches: int | None = None
    unused_loaders: int = 0
    frozen_weights: int = 0
    weights: int = 0
    steps_of_a_pass: int = 0

    def describe(self, steps: int) -> str:
        batches, loaders, steps = self.pass_batches or 0, self.unused_loaders, max(steps, self.steps_of_a_pass)
        of_a_pass = f" of a pass of {batches:,}" if batches > steps else ""
        parts = ["later passes and stages"]
        if loaders:
            parts.append("a DataLoader without a batch" if loaders == 1 else f"{loaders:,} DataLoaders without a batch")
        if self.frozen_weights:
            parts.append(f"training the {self.frozen_weights:,} of {self.weights:,} weights that are frozen now")
        return f"Watched: {steps:,} steps{of_a_pass}. Not seen: {', '.join(parts)}. --whole-run goes on to them."


@dataclass(frozen=True, slots=True)
class _Data:
    """A data set, as `hook/memorymark_epoch.py` notes it."""

    looked: int
    count: int | None = None
    largest: int = 0
    smallest: int = 0
    leading: int = 0
    leading_given: int = 0
    is_text: bool = False
    collated: int | None = None
    is_trained: bool = False
    problem: str | None = None

    def describe(self) -> str:
        if self.problem:
            return f"a data set was not looked through ({_describe_problem(self.problem)})"
        count, order = self.count or 0, self._describe_order()
        rows = f"all {count:,} rows" if self.looked == count else f"{self.looked:,} of {count:,} rows"
        if self.largest == self.smallest and not order:
            return f"{rows} looked through have the same size"
        unit = "characters" if order else "elements"
        some = f"{self.leading_given} of the {self.leading} that are the largest in one of their parts"
        largest = some if self.leading_given < self.leading else "the largest"
        used = "trained" if self.is_trained else "used, without training"
        sizes = f"{self.smallest:,} to {self.largest:,} {unit}"
        return f"{rows} looked through have {sizes}, {order}and {largest} were {used}"

    def _describe_order(self) -> str:
        """Say what the length of texts was judged by; empty where the rows have none."""
        if self.is_text:
            return "their length was judged by characters, not by tokens, "
        if self.collated is None:
            return ""
        which = "all" if self.collated == self.looked else f"the {self.collated:,} longest"
        return f"{which} were put in order by what the collate function makes of them, "


@dataclass(frozen=True, slots=True)
class _WholeRun:
    """What the hook noted of a whole run, and the reading of its start added."""

    data: tuple[_Data, ...]
    optimizers: int
    least_steps: int
    evaluation_batches: int
    is_evaluation_cut: bool
    checkpoints: int
    short_batch: int | None
    passes: int
    is_to_its_end: bool
    is_shortened: bool
    pass_batches: int | None
    seconds: float
    evaluation_left: int | None = None
    """The batches of an evaluation that was cut; None: not known."""

    def describe(self) -> Iterator[str]:
        yield from (each.describe() for each in self.data[:DATA_NAMED])
        if len(self.data) > DATA_NAMED:
            yield f"there were {len(self.data) - DATA_NAMED} more data sets"
        if not any(each.is_trained for each in self.data):
            yield (
                "what was trained came from no DataLoader, so it was not looked through: "
                f"later batches may take more than those of the {self.least_steps} steps that were watched"
            )
        if self.optimizers > 1:
            yield f"each of its {self.optimizers} optimizers made at least {self.least_steps} steps"
        left = "not all" if self.evaluation_left is None else f"{self.evaluation_left:,} did not"
        cut = f", {left}" if self.is_evaluation_cut else ""
        evaluated = f"{self.evaluation_batches} batches of its evaluation ran{cut}"
        yield evaluated if self.evaluation_batches else "no evaluation was seen after training had begun"
        yield "a checkpoint was saved" if self.checkpoints else "no checkpoint was saved"
        if self.short_batch:
            yield f"the short last batch of {self.short_batch} was trained"
        if self.is_to_its_end:
            yield "the script ran to its own end" + (f", {self.passes} passes of training" if self.passes else "")
            return
        yield f"{self.passes} passes of training ran: what the script changes later was not reached"
        if not self.is_shortened and self.pass_batches and self.least_steps:
            minutes = self.seconds / self.least_steps * self.pass_batches / 60
            yield (
                f"the script counts its batches, so no pass was shortened: one of {self.pass_batches} batches takes "
                f"about {max(minutes, 1):.0f} min, and {self.least_steps} steps were watched"
            )


def describe_whole_run(seen: Mapping[str, Any]) -> str:
    """Say what was looked through: "all 5,000 rows were looked through", and what ran. Raises ValueError."""
    parts = from_json(_WholeRun, seen).describe()
    return "whole run: " + "; ".join(dict.fromkeys(parts))  # a data set made anew for each epoch is said once


def _describe_problem(problem: str) -> str:
    """Return the engine's own words of a problem; of an error its class alone, since its message may be any text."""
    if problem in PROBLEMS:
        return problem
    found = _ERROR.fullmatch(problem)
    return f"{found[1] or ''}{found[2]}" if found else "the result file says why"


def describe_peak(phase: str | None, shape: tuple[int, ...], peak_bytes: int) -> str:
    """Say what held the peak: "the peak of 3.1 GiB is in backward of a batch of 40 with rows of 512"."""
    what = _BESIDE_STEPS.get(phase or "")
    if phase in TRAINING_PHASES and shape:
        rows = f" with rows of {shape[1]:,}" if len(shape) > 1 else ""
        what = f"{phase.replace('_', ' ')} of a batch of {shape[0]:,}{rows}"
    return f"the peak of {format_bytes(peak_bytes)} is {f'in {what}' if what else 'between the steps'}"
