"""PURE: what a whole run saw of the data and the script, and what it did not see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..units import format_bytes

DATA_NAMED = 4  # a script may make a data set of its own for each epoch


def describe_whole_run(seen: Mapping[str, Any]) -> str:
    """Say which rows were looked through, and which parts of the script ran: "all 5,000 rows were looked through"."""
    data = seen["data"]
    parts = [_describe_data(each) for each in data[:DATA_NAMED]]
    if len(data) > DATA_NAMED:
        parts.append(f"there were {len(data) - DATA_NAMED} more data sets")
    if not parts:
        parts = ["no DataLoader was seen, so no larger batch was looked for"]
    batches, checkpoints, short = seen["evaluation_batches"], seen["checkpoints"], seen["short_batch"]
    evaluated = f"{batches} batches of its evaluation ran{', not all' if seen['is_evaluation_cut'] else ''}"
    parts.append(evaluated if batches else "no evaluation was seen")
    parts.append("a checkpoint was saved" if checkpoints else "no checkpoint was saved")
    if short:
        parts.append(f"the short last batch of {short} was trained")
    return f"whole run: {', '.join(parts)}"


def _describe_data(data: Mapping[str, Any]) -> str:
    if data.get("problem"):
        return f"a data set was not looked through ({data['problem']})"
    count, looked = data["count"], data["looked"]
    rows = f"all {count:,} rows" if looked == count else f"{looked:,} of {count:,} rows"
    if data["largest"] == data["smallest"]:
        return f"{rows} looked through have the same size"
    sizes = f"{data['smallest']:,} to {data['largest']:,} elements"
    return f"{rows} looked through have {sizes}, and the largest were trained"


def describe_peak(phase: str | None, shape: tuple[int, ...], peak_bytes: int) -> str:
    """Say what held the peak: "the peak of 3.1 GiB is in backward of a batch of 40 with rows of 512"."""
    what = {"evaluation": "the evaluation", "checkpoint": "saving a checkpoint"}.get(phase or "")
    if what is None and shape:
        rows = f" with rows of {shape[1]}" if len(shape) > 1 else ""
        what = f"{(phase or '').replace('_', ' ')} of a batch of {shape[0]}{rows}"
    where = f"in {what}" if what else "between the steps"
    return f"the peak of {format_bytes(peak_bytes)} is {where}"
