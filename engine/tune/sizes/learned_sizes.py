"""PURE: what the errors of a script teach about the batch sizes that it takes.

A list that an error names is the rule. Else powers of two are followed first, as they train under any other rule; once
they have led to the limit of memory, a size between tells whether the script takes more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from ...results.result import Boundary, Outcome, Probe
from ...search.allowed_sizes import MOST_NUMBER, AllowedSizes, Rule, boundary_among
from ...search.boundary import with_note
from ...search.unguided import Found
from ...text.own_words import error_name
from .next_size import Start
from .script_error import UNKNOWN_TO_THE_SCRIPT, sizes_named

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
