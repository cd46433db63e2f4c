"""PURE: a time left as one rounded figure. Pages count it down by the same steps, in static/js/polling.js."""

from __future__ import annotations

MINUTE, HOUR = 60, 3_600
_STEPS = ((MINUTE, 5), (10 * MINUTE, MINUTE), (HOUR, 5 * MINUTE))
"""Below these seconds, round to a multiple of these: nobody plans by more."""
_LONGEST_STEP = 15 * MINUTE


def describe_left(seconds: float) -> str:
    """Write ``about 25 s left``, ``about 3 min left``, ``about 1 h 15 min left``."""
    step = next((step for below, step in _STEPS if seconds < below), _LONGEST_STEP)
    rounded = max(round(seconds / step) * step, _STEPS[0][1])
    figures = ((rounded // HOUR, "h"), (rounded % HOUR // MINUTE, "min"), (rounded % MINUTE, "s"))
    return f"about {' '.join(f'{count} {unit}' for count, unit in figures if count)} left"
