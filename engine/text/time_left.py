"""PURE: a time left as one rounded figure. Pages count it down by the same steps, in static/js/polling.js."""

from __future__ import annotations

import math

OF_BUDGET = "(its time budget)"
MINUTE, HOUR = 60, 3_600
_STEPS = ((MINUTE, 5), (10 * MINUTE, MINUTE), (HOUR, 5 * MINUTE))
"""Below these seconds, round to a multiple of these: nobody plans by more."""
_LONGEST_STEP = 15 * MINUTE


def describe_left(seconds: float) -> str:
    """Write ``about 25 s left``, ``about 3 min left``, ``about 1 h 15 min left``."""
    step = _step_of(seconds)
    return f"about {_figures(round(seconds / step) * step)} left"


def describe_most_left(seconds: float) -> str:
    """Write ``at most 25 min left``, rounded up: of a run that is bounded by its time budget alone."""
    step = _step_of(seconds)
    return f"at most {_figures(math.ceil(seconds / step) * step)} left"


def _step_of(seconds: float) -> int:
    return next((step for below, step in _STEPS if seconds < below), _LONGEST_STEP)


def _figures(seconds: int) -> str:
    rounded = max(seconds, _STEPS[0][1])
    figures = ((rounded // HOUR, "h"), (rounded % HOUR // MINUTE, "min"), (rounded % MINUTE, "s"))
    return " ".join(f"{count} {unit}" for count, unit in figures if count)
