"""PURE: what a speed-up's interval allows to claim. The same rule holds for measurements and for starts in turns.

A narrow interval allows a figure. A wide one still bounds the speed-up from below and above. A gain below 3 % is never
claimed, because two runs of the same size differ as much.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ..results.intervals import Interval
from ..results.speed_rounds import SpeedClaim
from ..results.stats import NOISE_FRACTION
from ..text.today import name_today

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
    """Whether a speed-up is more than noise: the figure by 3 % and its interval above 1; without a figure its low end.

    `low` is None in results before 0.5, which had no intervals.
    """
    if speedup is None:
        return low is not None and low > CLEARLY_FASTER
    return speedup >= CLEARLY_FASTER and (low is None or low > 1)


def describe_lower_bound(low: float) -> str:
    """Write "1.9x" for 1.96: a lower bound is never rounded up."""
    decimals = 2 if low < 1.1 else 1 if low < 10 else 0
    scale = 10**decimals
    return f"{math.floor(low * scale + 1e-9) / scale:.{decimals}f}x".replace(".0x", "x")


def describe_range(ratio: Interval) -> str:
    """Write "between 0.9x and 1.1x", the ends rounded outwards."""
    low, high = _ends(ratio.low, ratio.high)
    return f"between {low}x and {high}x"


def describe_bounds(low: float, high: float) -> str:
    """Write "2.0 to 3.8x", the ends rounded outwards: no more is claimed than is known."""
    return " to ".join(_ends(low, high)) + "x"


def _ends(low: float, high: float) -> tuple[str, str]:
    decimals = 2 if low < 1.1 else 1
    scale = 10**decimals
    below, above = math.floor(low * scale + 1e-9) / scale, math.ceil(high * scale - 1e-9) / scale
    return f"{below:.{decimals}f}", f"{above:.{decimals}f}"


@dataclass(frozen=True, slots=True)
class ComparedSizes:
    """Two sizes, and how many times as fast the first one is: "0.8 to 13x", as it was rounded."""

    batch_size: int
    interval: str
    other: int

    def said(self, today: int) -> str:
        """Write "30 is 0.8 to 13x as fast as your 4"."""
        other = name_today(today) if self.other == today else f"{self.other:,}"
        return f"{self.batch_size:,} is {self.interval} as fast as {other}"


def compared_in(reason: str | None) -> ComparedSizes | None:
    """Read the sizes back from a reason, the only place in a document that names them; None where it names none.

    >>> compared_in("speed not measurable here now: 30 is between 0.8x and 13x as fast as 16")
    ComparedSizes(batch_size=30, interval='0.8 to 13x', other=16)
    >>> compared_in("1,030 is 0.8 to 13x as fast as your 4")
    ComparedSizes(batch_size=1030, interval='0.8 to 13x', other=4)
    """
    if (found := _COMPARED.search(reason or "")) is None:
        return None
    size, other = (int(found[place].replace(",", "")) for place in (1, 4))
    return ComparedSizes(size, f"{found[2]} to {found[3]}", other)


_NUMBER = r"(\d[\d,]{0,11})"
_COMPARED = re.compile(
    rf"{_NUMBER} is (?:between )?(\d[\d.]*)x? (?:and|to) (\d[\d.]*x) as fast as (?:your |the default )?{_NUMBER}\Z",
    re.ASCII,
)
