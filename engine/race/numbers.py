"""PURE: whether a variant trains the same as today's: by the losses of the same batches from the same seed.

Today's losses are taken twice: they differ by their own non-determinism, below which no variant can fall. Beyond that
a variant may differ by `settings.step_settings.ROUNDING_TOLERANCES`. The largest difference of all steps counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..settings.step_settings import ROUNDING_TOLERANCES

STEPS = 5
"""The optimizer steps whose losses are compared."""
MOST_NOISE = ROUNDING_TOLERANCES["bf16"]
"""A training whose own losses differ by more is seeded by nothing that is set here: no variant can be compared."""
OWN_FACTOR = 3.0
"""A difference up to this many times that of today's training to itself is noise, or of other random numbers."""


class Sameness(StrEnum):
    """How the losses of a variant compare with today's."""

    BITS = "same_to_the_bit"
    ROUNDING = "same_within_rounding"
    DIFFERS = "differs"
    UNKNOWN = "not_measured"

    @property
    def label(self) -> str:
        return self.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Numbers:
    """The largest difference of a loss, as a share of today's; None where a loss is not finite, or none was taken."""

    sameness: Sameness
    largest_difference: float | None = None
    tolerance: float | None = None

    @property
    def is_offered(self) -> bool:
        return self.sameness in (Sameness.BITS, Sameness.ROUNDING)


UNKNOWN = Numbers(Sameness.UNKNOWN)


def largest_difference(losses: Sequence[float], today: Sequence[float]) -> float | None:
    """Return the largest difference of two losses of a step, as a share of the largest of today's; None: not finite.

    A share of each loss alone would be large where a loss passes through 0.

    >>> largest_difference([2.0, 1.01], [2.0, 1.0])
    0.0050000000000000044
    """
    if len(losses) != len(today) or not all(map(math.isfinite, [*losses, *today])):
        return None
    largest = max(map(abs, today), default=0.0)
    return max((abs(own - other) / max(largest, 1e-12) for own, other in zip(losses, today, strict=True)), default=None)


def compare_numbers(losses: Sequence[float], today: Sequence[float], own: float | None, tolerance: float) -> Numbers:
    """Compare a variant's losses with today's. `own` is how much those of today's training differ when repeated."""
    if not losses and not is_hidden(own):
        return Numbers(Sameness.UNKNOWN, None, tolerance)
    return judge_difference(largest_difference(losses, today), own, tolerance)


def is_hidden(own: float | None) -> bool:
    return own is not None and own > MOST_NOISE


def judge_difference(found: float | None, own: float | None, tolerance: float) -> Numbers:
    """Say how a largest difference of losses compares with what `own` differences and the precision explain."""
    if is_hidden(own):
        return UNKNOWN
    if found is None:  # a loss is not finite
        return Numbers(Sameness.DIFFERS, None, tolerance)
    allowed = max(tolerance, OWN_FACTOR * (own or 0.0))
    if found == 0.0:
        return Numbers(Sameness.BITS, found, allowed)
    return Numbers(Sameness.ROUNDING if found <= allowed else Sameness.DIFFERS, found, allowed)


def judge_again(stored: Numbers, own: float | None, tolerance: float) -> Numbers:
    """Judge the largest difference that a document has once more."""
    is_known = stored.largest_difference is not None or stored.sameness is not Sameness.UNKNOWN
    return judge_difference(stored.largest_difference, own, tolerance) if is_known or is_hidden(own) else stored
