"""PURE: what an error of the script says of the sizes that it takes: a wall that is not memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from ...machine.scratch import PREFIX
from ...results.result import Outcome, Probe
from ..hook.memorymark_seen import NO_BATCH

TIMEOUT = "Timeout"
"""The error type of a start whose steps were not done in time."""
UNKNOWN_TO_THE_SCRIPT = (TIMEOUT, NO_BATCH)
"""Ends of a start that no words of the script say: they teach nothing of the sizes that it takes."""
SIZES_OF_A_WALL, NEAR_A_WALL = 3, 1.1
_NUMBER = re.compile(r"(?<![\w.])\d{1,12}(?![\w.])|(?<![\w.])\d{1,12}(?=\.(?:\s|$))")
_OF_ONE_START = re.compile(rf"{PREFIX}\w+|\d+")
_SHAPE = re.compile(r"[\[(](\d+(?:, ?\d+)+)[\])]")


def is_same_error(one: Probe, other: Probe) -> bool:
    """Whether two starts failed with the same error; its numbers follow the batch size."""
    return one.error_type == other.error_type and _text(one) == _text(other)


def size_of_the_scripts_wall(probes: Sequence[Probe], most_trained: int) -> int | None:
    """Return the largest size that the script's own error names, then the one above it; None where it names none."""
    failed = min((p for p in probes if p.outcome is Outcome.ERROR), key=lambda p: p.batch_size, default=None)
    if failed is None or failed.batch_size <= most_trained:
        return None
    named, started = sizes_named(failed.error_message or ""), {p.batch_size for p in probes}
    if most_trained in named:
        return most_trained + 1
    untried = (size for size in named if most_trained < size < failed.batch_size and size not in started)
    return max(untried, default=None)


def wall_of_the_script(probes: Sequence[Probe], most_trained: int) -> int | None:
    """Return the smallest size that failed, where one error ends all larger sizes and the search is near enough.

    It is not memory that ends there, so no certificate is lost by the sizes that are left between.
    """
    failed = {p.batch_size: p for p in probes if p.outcome is Outcome.ERROR and p.error_type != TIMEOUT}
    if len(failed) < SIZES_OF_A_WALL:
        return None
    smallest = min(failed)
    is_near = most_trained < smallest <= NEAR_A_WALL * most_trained
    is_one_error = all(is_same_error(failed[smallest], each) for each in failed.values())
    return smallest if is_near and is_one_error else None


def sizes_named(message: str) -> set[int]:
    """Return the sizes that an error names.

    A shape names its first dimension, and with the size of what it should have held the rows that there were: "shape
    '[1008, 1, 28, 28]' is invalid for input of size 784000" names 1,000.
    """
    numbers = {int(each) for each in _NUMBER.findall(message)}
    return numbers | set(_rows_that_there_were(message, numbers))


def _rows_that_there_were(message: str, numbers: set[int]) -> Iterator[int]:
    for shape in _SHAPE.findall(message):
        _, *others = (int(each) for each in shape.split(","))
        of_a_row = prod(others)
        yield from (number // of_a_row for number in numbers if of_a_row and number % of_a_row == 0)


def _text(probe: Probe) -> str:
    """Return the message without what differs in each start: numbers, and the name of the folder that was `{out}`."""
    return _OF_ONE_START.sub("", probe.error_message or "")
