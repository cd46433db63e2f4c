"""PURE: what a whole run saw of the data and the script, and what it did not see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..text.units import format_bytes
from . import notes
from .replay import LATER_STEP

DATA_NAMED = 4
_ERROR = re.compile(rf"({notes.NO_LARGEST_BATCH}: )?([A-Za-z_]\w{{0,39}}): .*", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unseen:
    """What the first steps of a training show of the rest of it, as `hook/memorymark_unseen.py` notes it.

    `steps_of_a_pass` were watched in a further start, to the end of a pass.
    """

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


def describe_whole_run(seen: Mapping[str, Any]) -> str:
    """Say which rows were looked through, and which parts of the script ran: "all 5,000 rows were looked through"."""
    data, optimizers, steps = seen["data"], seen["optimizers"], seen["least_steps"]
    parts = [_describe_data(each) for each in data[:DATA_NAMED]]
    if len(data) > DATA_NAMED:
        parts.append(notes.MORE_DATA.write(count=len(data) - DATA_NAMED))
    if not any(each.get("is_trained") for each in data):
        parts.append(notes.NO_LOADER.write(count=steps))
    if optimizers > 1:
        parts.append(notes.OPTIMIZERS.write(count=optimizers, steps_count=steps))
    batches, short = seen["evaluation_batches"], seen["short_batch"]
    evaluated = notes.EVALUATED.write(count=batches, cut=", not all" if seen["is_evaluation_cut"] else "")
    parts.append(evaluated if batches else notes.NOT_EVALUATED)
    parts.append(notes.CHECKPOINT if seen["checkpoints"] else notes.NO_CHECKPOINT)
    if short:
        parts.append(notes.SHORT_BATCH.write(count=short))
    parts += _describe_stages(seen)
    return notes.WHOLE_RUN + "; ".join(dict.fromkeys(parts))  # a data set made anew for each epoch is said once


def _describe_stages(seen: Mapping[str, Any]) -> Iterator[str]:
    passes, steps, batches = seen["passes"], seen["least_steps"], seen["pass_batches"]
    if seen["is_to_its_end"]:
        yield notes.TO_ITS_END.write(passes=f", {passes} passes of training" if passes else "")
    else:
        yield notes.PASSES.write(count=passes)
    if not seen["is_shortened"] and not seen["is_to_its_end"] and batches and steps:
        minutes = seen["seconds"] / steps * batches / 60
        yield notes.NOT_SHORTENED.write(count=batches, minutes_count=f"{max(minutes, 1):.0f}", steps_count=steps)


def _describe_data(data: Mapping[str, Any]) -> str:
    if data.get("problem"):
        return notes.NOT_LOOKED_THROUGH.write(problem=_describe_problem(data["problem"]))
    count, looked, order = data["count"], data["looked"], _describe_order(data)
    rows = f"all {count:,} rows" if looked == count else f"{looked:,} of {count:,} rows"
    if data["largest"] == data["smallest"] and not order:
        return notes.ROWS_OF_ONE_SIZE.write(rows=rows)
    given, leading = data.get("leading_given", 0), data["leading"]
    some = f"{given} of the {leading} that are the largest in one of their parts"
    return notes.ROWS.write(
        rows=rows,
        least_count=f"{data['smallest']:,}",
        most_count=f"{data['largest']:,}",
        unit="characters" if order else "elements",
        order=order,
        largest=some if given < leading else "the largest",
        used="trained" if data.get("is_trained") else "used, without training",
    )


def _describe_problem(problem: str) -> str:
    """Return the engine's own words of a problem; of an error its class alone, since its message may be any text."""
    if problem in notes.PROBLEMS:
        return problem
    found = _ERROR.fullmatch(problem)
    return f"{found[1] or ''}{found[2]}" if found else "the result file says why"


def _describe_order(data: Mapping[str, Any]) -> str:
    """Say what the length of texts was judged by; empty where the rows have none."""
    if data["is_text"]:
        return "their length was judged by characters, not by tokens, "
    if (collated := data.get("collated")) is None:
        return ""
    which = "all" if collated == data["looked"] else f"the {collated:,} longest"
    return f"{which} were put in order by what the collate function makes of them, "


def describe_peak(phase: str | None, shape: tuple[int, ...], peak_bytes: int) -> str:
    """Say what held the peak: "the peak of 3.1 GiB is in backward of a batch of 40 with rows of 512"."""
    whats = {"evaluation": "the evaluation", "checkpoint": "saving a checkpoint", LATER_STEP: "a later step"}
    what = whats.get(phase or "")
    if what is None and phase and shape:
        rows = f" with rows of {shape[1]:,}" if len(shape) > 1 else ""
        what = f"{phase.replace('_', ' ')} of a batch of {shape[0]:,}{rows}"
    return notes.PEAK.write(bytes=format_bytes(peak_bytes), where=f"in {what}" if what else "between the steps")
