"""PURE: what a whole run saw of the data and the script, and what it did not see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..text.units import format_bytes

DATA_NAMED = 4


def describe_whole_run(seen: Mapping[str, Any]) -> str:
    """Say which rows were looked through, and which parts of the script ran: "all 5,000 rows were looked through"."""
    data, optimizers, steps = seen["data"], seen["optimizers"], seen["least_steps"]
    parts = [_describe_data(each) for each in data[:DATA_NAMED]]
    if len(data) > DATA_NAMED:
        parts.append(f"there were {len(data) - DATA_NAMED} more data sets")
    if not any(each.get("is_trained") for each in data):
        parts.append(
            "what was trained came from no DataLoader, so it was not looked through: "
            f"later batches may take more than those of the {steps} steps that were watched"
        )
    if optimizers > 1:
        parts.append(f"each of its {optimizers} optimizers made at least {steps} steps")
    batches, checkpoints, short = seen["evaluation_batches"], seen["checkpoints"], seen["short_batch"]
    evaluated = f"{batches} batches of its evaluation ran{', not all' if seen['is_evaluation_cut'] else ''}"
    parts.append(evaluated if batches else "no evaluation was seen after training had begun")
    parts.append("a checkpoint was saved" if checkpoints else "no checkpoint was saved")
    if short:
        parts.append(f"the short last batch of {short} was trained")
    return f"whole run: {'; '.join(dict.fromkeys(parts))}"  # a data set made anew for each epoch is said once


def _describe_data(data: Mapping[str, Any]) -> str:
    if data.get("problem"):
        return f"a data set was not looked through ({data['problem']})"
    count, looked, order = data["count"], data["looked"], _describe_order(data)
    rows = f"all {count:,} rows" if looked == count else f"{looked:,} of {count:,} rows"
    if data["largest"] == data["smallest"] and not order:
        return f"{rows} looked through have the same size"
    sizes = f"{data['smallest']:,} to {data['largest']:,} {'characters' if order else 'elements'}"
    used = "trained" if data.get("is_trained") else "used, without training"
    given, leading = data.get("leading_given", 0), data["leading"]
    largest = (
        f"{given} of the {leading} that are the largest in one of their parts" if given < leading else "the largest"
    )
    return f"{rows} looked through have {sizes}, {order}and {largest} were {used}"


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
    what = {"evaluation": "the evaluation", "checkpoint": "saving a checkpoint"}.get(phase or "")
    if what is None and shape:
        rows = f" with rows of {shape[1]:,}" if len(shape) > 1 else ""
        what = f"{(phase or '').replace('_', ' ')} of a batch of {shape[0]:,}{rows}"
    where = f"in {what}" if what else "between the steps"
    return f"the peak of {format_bytes(peak_bytes)} is {where}"
