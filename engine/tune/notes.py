"""PURE: what a result notes of a training beside its figures, sentence by sentence.

A document from another machine may hold these sentences alone: what they say was seen there, and is in no probe. A note
joins them with "; ", which none of them has within.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..search.allowed_sizes import BUDGETS
from ..text.units import format_bytes
from ..text.wording import Text, Wording

LONGEST, FIXED = ": --whole-run trains the longest", ": the largest alone, at every step, tells more"
"""What helps where batches differ: by the rows of the data, or by what the loop draws."""
MORE_THAN_WATCHED = Wording(
    "the batches that were watched were {least_count} to {most_count} {what}, "
    "and a {larger} one takes more memory{remedy}",
    {
        "what": ("items large", "long"),
        "larger": ("larger", "longer"),
        "remedy": ("", LONGEST),
    },
)
VARIED_DIMENSIONS = Wording(
    "of the inputs that were watched dimension {dimension_sizes} was {least_count} to {most_count}, "
    "and a larger one takes more memory{remedy}",
    {"remedy": ("", LONGEST, FIXED)},
)
VARIED_MEMORY = Wording(
    "the steps that were watched took {least_bytes} to {most_bytes}, although their inputs had the same shapes: "
    "a later one may take more"
)
REFUSED_IN_EVALUATION = Wording(
    "{count} ran out of memory in an evaluation, to which {largest_count} had not come: --whole-run goes on to it"
)
STILL_ROSE = Wording("of {count} steps that were watched a late one took more than all before it: later ones may, too")
REFUSED_LATE = Wording(
    "{count} ran out of memory in its step {step_count}, where a stage of the training may have begun: "
    "smaller ones may come to it later"
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
NO_ROWS = "no rows were seen in it: that it uses the batch size is shown by its memory alone, which rises with it"
FILLS_A_BUDGET = Wording(
    "the batch size is a budget of {unit}, and batches were watched that fill it by more than half",
    {"unit": BUDGETS},
)
LEFT_OUT = Wording(
    "{bytes} of tensors that the training only reads were there before it: they were taken for data and do not count"
)

_RULES = (("multiples of ", "count"), ("divisors of ", "count"), ("the sizes ", "named_list"))
LEARNED_SIZES = Wording(
    "the script seems to take {rule} only: {failed_sizes} ended with {errors}",
    {"rule": ("powers of two", *(Wording(f"{rule}{{{part}}}") for rule, part in _RULES))},
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

MUCH = 0.02
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
TO_ITS_END = Wording("the script ran to its own end{passes}", {"passes": ("", Wording(", {count} passes of training"))})
PASSES = Wording("{count} passes of training ran: what the script changes later was not reached")
NOT_SHORTENED = Wording(
    "the script counts its batches, so no pass was shortened: one of {count} batches takes about {minutes_count} min, "
    "and {steps_count} steps were watched"
)

OF_WHOLE_RUN: tuple[Text, ...] = (
    *(NOT_LOOKED_THROUGH, ROWS_OF_ONE_SIZE, ROWS, MORE_DATA, NO_LOADER, OPTIMIZERS, EVALUATED, NOT_EVALUATED),
    *(CHECKPOINT, NO_CHECKPOINT, SHORT_BATCH, TO_ITS_END, PASSES, NOT_SHORTENED),
)
NOTES: tuple[Text, ...] = (
    *(
        MORE_THAN_WATCHED,
        VARIED_DIMENSIONS,
        VARIED_MEMORY,
        STILL_ROSE,
        REFUSED_LATE,
        REFUSED_IN_EVALUATION,
        ROWS_OF_A_SAMPLE,
        NO_ROWS,
        FILLS_A_BUDGET,
    ),
    *(GROWS, EVALUATION_KEEPS, IDLE_OPTIMIZERS, REFUSED, LEFT_OUT, *OF_WHOLE_RUN),
)
"""All but those that a document is compared with: the peak, and the sizes that a script takes."""


def caveat_of(
    differences: Sequence[str],
    growth_bytes: int,
    kept_bytes: int,
    idle_optimizers: int,
    refused_allocations: int = 0,
) -> str | None:
    """Say why later steps may take more than those watched."""
    parts = [*differences]
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


def left_out(only_read_bytes: int, peak_bytes: int) -> str | None:
    return LEFT_OUT.write(bytes=format_bytes(only_read_bytes)) if is_much(only_read_bytes, peak_bytes) else None


def is_much(size: int, peak_bytes: int) -> bool:
    """Whether it is more of the peak than two ways to count it may differ by."""
    return size > MUCH * peak_bytes


def describe_lengths(longest: Collection[int], are_items: bool, remedy: str) -> str:
    """Say how long the batches were that were watched."""
    what, larger = ("items large", "larger") if are_items else ("long", "longer")
    return MORE_THAN_WATCHED.write(
        least_count=min(longest), most_count=max(longest), what=what, larger=larger, remedy=remedy
    )


def describe_dimensions(ranges: Mapping[int, tuple[int, int]], remedy: str) -> str:
    """Say which dimensions of the inputs differed, and what the widest of them were."""
    least, most = max(ranges.values(), key=lambda each: each[1] - each[0])
    alike = " and ".join(str(number) for number, sizes in ranges.items() if sizes == (least, most))
    return VARIED_DIMENSIONS.write(dimension_sizes=alike, least_count=least, most_count=most, remedy=remedy)


def describe_varied(peaks: Collection[int]) -> str:
    return VARIED_MEMORY.write(least_bytes=format_bytes(min(peaks)), most_bytes=format_bytes(max(peaks)))
