"""PURE: what the errors of a script teach about the batch sizes that it takes: a rule, or a wall that is not memory.

A list that an error names is the rule. Else powers of two are followed first, as they train under any other rule; once
they have led to the limit of memory, a size between tells whether the script takes more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from ....facts.result import Boundary, Outcome, Probe
from ....machine.scratch import PREFIX
from ....search.allowed_sizes import MOST_NUMBER, AllowedSizes, Rule, boundary_among
from ....search.boundary import with_note
from ....search.unguided import Found
from ....text.own_words import error_name
from ..hook.memorymark_seen import NO_BATCH
from .next_size import Start

TIMEOUT = "Timeout"
"""The error type of a start whose steps were not done in time."""
UNKNOWN_TO_THE_SCRIPT = (TIMEOUT, NO_BATCH)
"""Ends that MemoryMark gave a start: nothing of the script's own sizes is learned from these."""
SIZES_OF_A_WALL, NEAR_A_WALL = 3, 1.1
_NUMBER = re.compile(r"(?<![\w.])\d{1,12}(?![\w.])|(?<![\w.])\d{1,12}(?=\.(?:\s|$))")
_OF_ONE_START = re.compile(rf"{PREFIX}\w+|\d+")
_SHAPE = re.compile(r"[\[(](\d+(?:, ?\d+)+)[\])]")
_CHOICE = re.compile(r"choos|choice|one of|either|allowed|support|valid|option", re.IGNORECASE)
_LIST = re.compile(r"\d{1,12}['\"]?(?:(?:,\s*(?:and |or )?|\s+(?:and|or)\s+|\s*\|\s*)['\"]?\d{1,12}['\"]?){1,98}")
_DIVISION = re.compile(r"divi[ds]|multiple|remainder|%", re.IGNORECASE)


def sizes_taken_and_failed(probes: Sequence[Probe]) -> tuple[set[int], set[int]]:
    ended = (Outcome.FITS, Outcome.OUT_OF_MEMORY)
    taken = {p.batch_size for p in probes if p.outcome in ended}
    failed = {p.batch_size for p in probes if p.outcome is Outcome.ERROR and p.error_type not in UNKNOWN_TO_THE_SCRIPT}
    return taken, failed - taken


def failed_by_rule(rule: AllowedSizes, probes: Sequence[Probe]) -> set[int]:
    """Return the sizes that failed as the rule forbids them; one that it allows ended for another reason: a wall."""
    return {size for size in sizes_taken_and_failed(probes)[1] if not rule.allows(size)}


def learned_sizes(probes: Sequence[Probe], given: AllowedSizes | None = None) -> AllowedSizes | None:
    """Return the strictest rule that the starts so far allow, or None; beside a `given` rule only lists count."""
    taken, failed = sizes_taken_and_failed(probes)
    if not failed or not taken:
        return given
    lists = (AllowedSizes.of([*filter(given.allows, each.listed)]) if given else each for each in _lists_named(probes))
    if (listed := next((each for each in lists if each.is_consistent(taken, failed)), None)) or given:
        return listed or given
    rules = [*_rules_named(probes), AllowedSizes(Rule.POWER_OF_TWO), AllowedSizes(Rule.MULTIPLE, math.gcd(*taken))]
    return next((rule for rule in rules if rule.is_consistent(taken, failed)), None)


def wider_sizes(probes: Sequence[Probe]) -> AllowedSizes | None:
    """Return the widest rule of multiples that the starts so far allow, to see whether the script takes more."""
    taken, failed = sizes_taken_and_failed(probes)
    common = math.gcd(*taken)
    powers = (1 << power for power in range(1, common.bit_length()) if common % (1 << power) == 0)
    rules = (AllowedSizes(Rule.MULTIPLE, number) for number in powers)
    return next((rule for rule in rules if rule.is_consistent(taken, failed)), None)


def is_spelled_out(rule: AllowedSizes, probes: Sequence[Probe]) -> bool:
    """Whether the rule is a list, or the errors of two sizes name it: what both have does not follow the batch size."""
    _, failed = sizes_taken_and_failed(probes)
    naming = {p.batch_size for p in probes if p.batch_size in failed and rule in _rules_named([p])}
    return rule.rule is Rule.LISTED or len(naming) > 1


def _lists_named(probes: Sequence[Probe]) -> Iterator[AllowedSizes]:
    """Yield the lists of sizes in errors: "invalid choice: 512 (choose from 16, 24, 48)"."""
    messages = {p.error_message or "" for p in probes if p.outcome is Outcome.ERROR}
    for found in (found for each in sorted(messages) if _CHOICE.search(each) for found in _LIST.findall(each)):
        yield AllowedSizes.of([int(size) for size in re.findall(r"\d+", found) if int(size)])


def _rules_named(probes: Sequence[Probe]) -> Iterator[AllowedSizes]:
    """Yield the rules that errors spell out: "batch size must be divisible by 8", "524288 is not divisible by 105"."""
    messages = {p.error_message or "" for p in probes if p.outcome is Outcome.ERROR}
    for number in sorted({n for message in messages if _DIVISION.search(message) for n in sizes_named(message)}):
        if 1 < number <= MOST_NUMBER:
            yield AllowedSizes(Rule.MULTIPLE, number)
            yield AllowedSizes(Rule.DIVISOR, number)


def next_allowed(rule: AllowedSizes, step: int | Found, starts: Sequence[Start], maximum: int) -> int | Found:
    if isinstance(step, Found):
        return step
    low = max((s.batch_size for s in starts if s.fits), default=0)
    high = min((s.batch_size for s in starts if not s.fits and s.batch_size > low), default=None)
    size = rule.nearest(step, low, high or maximum + 1)
    return Found(low, high) if size is None else size


def boundary_of_rule(
    boundary: Boundary, rule: AllowedSizes, given: AllowedSizes | None, probes: Sequence[Probe]
) -> Boundary:
    """Return the boundary among the sizes that a rule allows, with what taught the rule where none was given."""
    boundary = boundary_among(boundary, rule)
    if rule == given:
        return boundary
    _, failed = sizes_taken_and_failed(probes)
    errors = {error_name(p.error_type) for p in probes if p.batch_size in failed}
    sizes = " and ".join(map(str, sorted(failed)))
    seems = f"the script seems to take {rule.describe()} only"
    return with_note(boundary, f"{seems}: {sizes} ended with {' and '.join(sorted(errors))}")


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
        of_a_row = math.prod(others)
        yield from (number // of_a_row for number in numbers if of_a_row and number % of_a_row == 0)


def _text(probe: Probe) -> str:
    """Return the message without what differs in each start: numbers, and the name of the folder that was `{out}`."""
    return _OF_ONE_START.sub("", probe.error_message or "")
