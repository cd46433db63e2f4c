"""PURE: what a result notes of a training beside its figures, sentence by sentence.

A document from another machine may hold these sentences alone: what they say was seen there, and is in no probe. A note
joins them with "; ", which none of them has within.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..search.allowed_sizes import BUDGETS
from ..text.units import format_bytes
from ..text.wording import Text, Wording

MORE_THAN_WATCHED = Wording(
    "the batches that were watched were {least_count} to {most_count} {what}, "
    "and a {larger} one takes more memory{remedy}",
    {
        "what": ("items large", "long"),
        "larger": ("larger", "longer"),
        "remedy": ("", ": --whole-run trains the longest"),
    },
)
GROWS = Wording(
    "each step left {bytes} more behind than the one before: if that goes on, the training runs out of memory later"
)
EVALUATION_KEEPS = Wording(
    "each batch of the evaluation left about {bytes} behind: "
    "an evaluation of many batches takes more than the few that were watched"
)
IDLE_OPTIMIZERS = Wording(
    "{count} of the optimizers had made no step yet: once all do, the training may take more memory"
)
REFUSED = Wording(
    "the card refused {count} {allocations}, and torch went on with less: its steps may be slower for it",
    {"allocations": ("allocation", "allocations")},
)
ROWS_OF_A_SAMPLE = Wording(
    "each sample of the batch size is {count} row{s} of the model{calls}{more}",
    {
        "s": ("", "s"),
        "calls": ("", " in several calls"),
        "more": ("", Wording(", with {count} more beside them")),
    },
)
FILLS_A_BUDGET = Wording(
    "the batch size is a budget of {unit}, and batches were watched that fill it by more than half",
    {"unit": BUDGETS},
)

LEARNED_SIZES = Wording(
    "the script seems to take {rule} only: {failed_sizes} ended with {errors}",
    {"rule": ("powers of two", Wording("multiples of {count}"), Wording("divisors of {count}"))},
)

PEAK = Wording(
    "the peak of {bytes} is {where}",
    {
        "where": (
            *("between the steps", "in a later step", "in the evaluation", "in saving a checkpoint"),
            Wording(
                "in {phase} of a batch of {count}{rows}",
                {"phase": ("forward", "backward", "optimizer step"), "rows": ("", Wording(" with rows of {count}"))},
            ),
        )
    },
)

WHOLE_RUN = "whole run: "
"""Before the first sentence of what a whole run saw."""
PROBLEMS = (
    "a row has another size each time",
    "its rows have no size: the loader makes each batch of them",
    "its rows come one after the other",
    "a batch sampler of its own chooses the rows",
)
"""Why a data set is not looked through, where no error is the cause."""
NO_LARGEST_BATCH = "no batch could be made of its largest rows"
NOT_LOOKED_THROUGH = Wording(
    "a data set was not looked through ({problem})",
    {"problem": (*PROBLEMS, Wording("{error}"), Wording(NO_LARGEST_BATCH + ": {error}"), "the result file says why")},
)
_ROWS = (Wording("all {count} rows"), Wording("{looked_count} of {count} rows"))
ROWS_OF_ONE_SIZE = Wording("{rows} looked through have the same size", {"rows": _ROWS})
ROWS = Wording(
    "{rows} looked through have {least_count} to {most_count} {unit}, {order}and {largest} were {used}",
    {
        "rows": _ROWS,
        "unit": ("characters", "elements"),
        "order": (
            "",
            "their length was judged by characters, not by tokens, ",
            Wording(
                "{which} were put in order by what the collate function makes of them, ",
                {"which": ("all", Wording("the {count} longest"))},
            ),
        ),
        "largest": ("the largest", Wording("{count} of the {all_count} that are the largest in one of their parts")),
        "used": ("trained", "used, without training"),
    },
)
MORE_DATA = Wording("there were {count} more data sets")
NO_LOADER = Wording(
    "what was trained came from no DataLoader, so it was not looked through: "
    "later batches may take more than those of the {count} steps that were watched"
)
OPTIMIZERS = Wording("each of its {count} optimizers made at least {steps_count} steps")
EVALUATED = Wording("{count} batches of its evaluation ran{cut}", {"cut": ("", ", not all")})
NOT_EVALUATED = "no evaluation was seen after training had begun"
CHECKPOINT, NO_CHECKPOINT = "a checkpoint was saved", "no checkpoint was saved"
SHORT_BATCH = Wording("the short last batch of {count} was trained")

OF_WHOLE_RUN: tuple[Text, ...] = (
    *(NOT_LOOKED_THROUGH, ROWS_OF_ONE_SIZE, ROWS, MORE_DATA, NO_LOADER, OPTIMIZERS, EVALUATED, NOT_EVALUATED),
    *(CHECKPOINT, NO_CHECKPOINT, SHORT_BATCH),
)
NOTES: tuple[Text, ...] = (
    MORE_THAN_WATCHED,
    GROWS,
    EVALUATION_KEEPS,
    IDLE_OPTIMIZERS,
    REFUSED,
    ROWS_OF_A_SAMPLE,
    FILLS_A_BUDGET,
    *OF_WHOLE_RUN,
)
"""All but those that a document is compared with: the peak, and the sizes that a script takes."""


def caveat_of(
    lengths: Sequence[Collection[int]],
    are_items: bool,
    growth_bytes: int,
    kept_bytes: int,
    is_whole: bool,
    idle_optimizers: int,
    refused_allocations: int = 0,
) -> str | None:
    """Say why later steps may take more than those watched."""
    parts = []
    longest = _longest(lengths)
    if are_varied(lengths):
        text = MORE_THAN_WATCHED.write(
            least_count=min(longest),
            most_count=max(longest),
            what="items large" if are_items else "long",
            larger="larger" if are_items else "longer",
            remedy="" if is_whole else ": --whole-run trains the longest",
        )
        parts.append(text)
    if growth_bytes:
        parts.append(GROWS.write(bytes=format_bytes(growth_bytes)))
    if kept_bytes:
        parts.append(EVALUATION_KEEPS.write(bytes=format_bytes(kept_bytes)))
    if idle_optimizers:
        parts.append(IDLE_OPTIMIZERS.write(count=idle_optimizers))
    if refused_allocations:
        several = "allocation" if refused_allocations == 1 else "allocations"
        parts.append(REFUSED.write(count=refused_allocations, allocations=several))
    return "; ".join(parts) or None


def are_varied(lengths: Sequence[Collection[int]]) -> bool:
    """Whether the batches differ in length. One length of several modules is no difference."""
    return len({*_longest(lengths)}) > 1


def _longest(lengths: Sequence[Collection[int]]) -> list[int]:
    return [max(each) for each in lengths if each]
