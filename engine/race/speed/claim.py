"""PURE: what a speed-up's interval allows to claim: never a gain below 3 %, by which two runs of one size differ."""

from __future__ import annotations

import math

from ...facts.intervals import Interval
from ...facts.speed_rounds import SpeedClaim
from ...facts.stats import NOISE_FRACTION

CLEARLY_FASTER = 1 + NOISE_FRACTION


def claim_of(gain: Interval, *, is_narrow: bool) -> SpeedClaim:
    """Return what is claimed about `gain`: how many times as fast another size is as today's.

    >>> claim_of(Interval(2.0, 2.8, 3.8), is_narrow=False)
    <SpeedClaim.AT_LEAST: 'at_least'>
    >>> claim_of(Interval(0.6, 0.8, 1.0), is_narrow=False)
    <SpeedClaim.NO_GAIN: 'no_gain'>
    >>> claim_of(Interval(0.9, 1.0, 1.2), is_narrow=False)
    <SpeedClaim.NOTHING: 'nothing'>
    """
    if is_narrow:
        return SpeedClaim.FIGURE
    if gain.low > CLEARLY_FASTER:
        return SpeedClaim.AT_LEAST
    return SpeedClaim.NO_GAIN if gain.high <= CLEARLY_FASTER else SpeedClaim.NOTHING


def is_gain(speedup: float | None, low: float | None) -> bool:
    """Whether a speed-up is more than noise: 3 %, with its interval above 1, or without a figure by its low end."""
    if speedup is None:
        return low is not None and low > CLEARLY_FASTER
    return speedup >= CLEARLY_FASTER and (low is None or low > 1)


def describe_lower_bound(low: float) -> str:
    """Write "1.9x" for 1.96: a lower bound is never rounded up."""
    decimals = 2 if low < 1.1 else 1 if low < 10 else 0
    scale = 10**decimals
    return f"{math.floor(low * scale + 1e-9) / scale:.{decimals}f}x".replace(".0x", "x")


def describe_bounds(low: float, high: float) -> str:
    """Write "2.0 to 3.8x", the ends rounded outwards: no more is claimed than is known."""
    decimals = 2 if low < 1.1 else 1
    scale = 10**decimals
    below, above = math.floor(low * scale + 1e-9) / scale, math.ceil(high * scale - 1e-9) / scale
    return f"{below:.{decimals}f} to {above:.{decimals}f}x"
