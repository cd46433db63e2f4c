"""PURE: whether one entry is shown to be faster than another by the order of rounds that other work disturbed.

On cores that others use no factor is known: they delay the threads of a step whenever they synchronise, which slows
small batches down two or three times more, and single blocks by any amount. Which of two is faster is known where every
round says so by more than that. `benchmarks/timing_simulation.py` chose the constants: fewer than 1 in 1,000 of such
orders are false.
"""

from __future__ import annotations

from collections.abc import Iterable

LEAST_RATIO = 3.0
"""How many times as fast it has to be in every round: one round below it breaks the order."""
ROUNDS = 10
CLEAR_RATIO = 8.0
CLEAR_ROUNDS = 6
"""So many rounds suffice where it is `CLEAR_RATIO` times as fast in each of them."""


def is_ahead(ratios: Iterable[float]) -> bool | None:
    """Return whether the order is shown, by how many times as fast each round was; None while rounds may still show it.

    >>> is_ahead([46, 12, 87, 31, 50, 18])
    True
    >>> is_ahead([46, 12, 87, 31, 50, 5.2]) is None
    True
    >>> is_ahead([46, 12, 2.1])
    False
    """
    known = list(ratios)
    least = min(known, default=CLEAR_RATIO)
    if least <= LEAST_RATIO:
        return False
    is_shown = len(known) >= ROUNDS or (len(known) >= CLEAR_ROUNDS and least > CLEAR_RATIO)
    return is_shown or None
