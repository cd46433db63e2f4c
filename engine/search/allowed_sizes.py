"""PURE: which batch sizes a script takes, where it does not take every one: multiples, divisors, powers of two, a list.

nanochat wants a divisor of its total batch, others a multiple of 8. Any other size ends with an error of the script's
own, which says nothing of memory. So the search goes among the sizes that the rule allows, and its certificate says so.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from ..errors import SpecError
from ..facts.result import Boundary, Reason

MOST_NUMBER = 2**40
BUDGETS = ("tokens", "nodes", "frames", "points")
"""What a size may count that is no number of rows: batches are filled up to so many."""
_TEXT = re.compile(r"\s*(?:(multiple|divisor)s?\s+of\s+([\d,_]{1,16})|powers?\s+of\s+(?:two|2))\s*", re.IGNORECASE)
_LIST = re.compile(r"(?:the sizes \d{1,12}|\s*\d{1,12}\s*,\s*\d{1,12})(?:\s*,\s*\d{1,12}){0,98}\s*")


class Rule(StrEnum):
    MULTIPLE = "multiple"
    DIVISOR = "divisor"
    POWER_OF_TWO = "power"
    LISTED = "listed"


@dataclass(frozen=True, slots=True)
class AllowedSizes:
    """The sizes that a script takes: the multiples or divisors of `number`, the powers of two, or those `listed`."""

    rule: Rule
    number: int = 1
    listed: tuple[int, ...] = ()

    @classmethod
    def of(cls, sizes: Collection[int]) -> AllowedSizes:
        return cls(Rule.LISTED, listed=tuple(sorted({*sizes})))

    @classmethod
    def parse(cls, text: str) -> AllowedSizes:
        """Read "multiple of 8", "divisor of 524288", "power of two" or "16, 24, 48". Raises SpecError with the field.

        >>> AllowedSizes.parse("multiple of 8").describe()
        'multiples of 8'
        """
        if _LIST.fullmatch(text):
            return cls.of([int(each) for each in re.findall(r"\d+", text) if int(each)])
        found = _TEXT.fullmatch(text)
        if found is None:
            shown = text[:40]
            raise SpecError(
                "sizes",
                f"{shown!r} is none of 'multiple of 8', 'divisor of 4096', 'power of two', '16, 24, 48', 'tokens'",
            )
        if found[1] is None:
            return cls(Rule.POWER_OF_TWO)
        number = int(re.sub("[,_]", "", found[2]) or 0)
        if not 1 <= number <= MOST_NUMBER:
            raise SpecError("sizes", f"{found[2]} is out of range; from 1 to {MOST_NUMBER:,}")
        return cls(Rule(found[1].lower()), number)

    def describe(self) -> str:
        """Write "multiples of 8"."""
        if self.rule is Rule.LISTED:
            return f"the sizes {', '.join(map(str, self.listed))}"
        return "powers of two" if self.rule is Rule.POWER_OF_TWO else f"{self.rule}s of {self.number:,}"

    def allows(self, size: int) -> bool:
        """Whether the script takes this size.

        >>> [size for size in range(1, 13) if AllowedSizes(Rule.DIVISOR, 12).allows(size)]
        [1, 2, 3, 4, 6, 12]
        """
        if self.rule is Rule.MULTIPLE:
            return size % self.number == 0
        if self.rule is Rule.LISTED:
            return size in self.listed
        return self.number % size == 0 if self.rule is Rule.DIVISOR else size & (size - 1) == 0

    def at_most(self, size: int) -> int:
        """Return the largest allowed size up to `size`; 0 where there is none.

        >>> AllowedSizes(Rule.POWER_OF_TWO).at_most(200)
        128
        """
        if size < 1:
            return 0
        if self.rule is Rule.MULTIPLE:
            return size // self.number * self.number
        if self.rule is Rule.POWER_OF_TWO:
            return 1 << (size.bit_length() - 1)
        sizes = self._sizes()
        return sizes[place - 1] if (place := bisect_right(sizes, size)) else 0

    def at_least(self, size: int) -> int | None:
        """Return the smallest allowed size from `size` on; None where there is none.

        >>> AllowedSizes(Rule.DIVISOR, 12).at_least(5)
        6
        """
        if self.rule is Rule.MULTIPLE:
            return -(-size // self.number) * self.number
        if self.rule is Rule.POWER_OF_TWO:
            return 1 << (size - 1).bit_length()
        sizes = self._sizes()
        place = bisect_left(sizes, size)
        return sizes[place] if place < len(sizes) else None

    def _sizes(self) -> Sequence[int]:
        return self.listed if self.rule is Rule.LISTED else _divisors(self.number)

    def nearest(self, size: int, above: int, below: int) -> int | None:
        """Return the allowed size nearest to `size` from below, else from above; None if none lies between the two."""
        down, up = self.at_most(min(size, below - 1)), self.at_least(above + 1)
        if down > above:
            return down
        return up if up is not None and up < below else None

    def is_consistent(self, taken: Collection[int], failed: Collection[int]) -> bool:
        return all(map(self.allows, taken)) and not any(map(self.allows, failed))


@lru_cache(maxsize=8)
def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})


def boundary_among(boundary: Boundary, rule: AllowedSizes) -> Boundary:
    boundary = replace(boundary, allowed_sizes=rule.describe())
    if boundary.reason is Reason.MAX_BATCH_SIZE and rule.at_least((boundary.largest_batch_size or 0) + 1) is None:
        none = "is no larger one" if rule.rule is Rule.LISTED else f"are no larger {rule.describe()}"
        return replace(boundary, reason=Reason.SIZE_LIMIT, refusal=f"there {none}")
    return boundary
