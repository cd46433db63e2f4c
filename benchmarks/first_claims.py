"""PURE: what a printed headline claims of the speed, and whether four pairs of plain starts agree."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import Any

_HEADLINES = (
    r".*(?:Use|Keep) batch size .*",
    r".*None is recommended.*",
    r".* with \d+ lines?: .*",
    r"No (?:change|batch size) .*",
    r".*Nothing is .*",
)
_HEADLINE = re.compile(rf"^ *({'|'.join(_HEADLINES)})$", re.MULTILINE)
_FIGURE = re.compile(r"([\d.]+)(?=x| to \d|, [\d.]+\]|\])")
_MONEY = "; saves"


def headline_of(printed: str) -> str:
    """Return the last line that answers, or the last line."""
    return str((_HEADLINE.findall(printed) or [printed.strip().rpartition("\n")[2]])[-1])


def claimed(said: str) -> dict[str, Any]:
    """Return the sort of the claim, and the least and the most that the speed-up may be by it.

    >>> claimed("Use batch size 512: at least 7.5x as fast as your 16.")
    {'claim': 'at least', 'least': 7.5, 'most': None}
    >>> claimed("1.90x [1.81, 2.02] as fast with 1 line: Fused optimizer; saves $57 [$54, $61] a year.")
    {'claim': 'figure', 'least': 1.81, 'most': 2.02}
    >>> claimed("Use batch size 2,048: faster than your 16 in 10 of 10 rounds.")
    {'claim': 'order', 'least': 1.0, 'most': None}

    >>> claimed("Keep batch size 16: 56 is 0.8 to 1.4x as fast as batch size 16.")
    {'claim': 'keep', 'least': None, 'most': 1.4}

    The README's Python lines print the size alone: that it is faster is all they say.
    """
    figures = [float(each) for each in _FIGURE.findall(said.partition(_MONEY)[0])]
    if re.search("Keep batch|No change |^recommended 16$", said):
        return {"claim": "keep", "least": None, "most": max(figures, default=None)}
    if re.search(r"faster .*in \d+ of \d+ rounds|^recommended \d", said, re.IGNORECASE):
        return {"claim": "order", "least": 1.0, "most": None}
    if re.search("None is|Nothing is", said) or not figures:
        return {"claim": "none", "least": None, "most": None}
    if "at least" in said.lower():
        return {"claim": "at least", "least": min(figures), "most": None}
    return {"claim": "figure", "least": min(figures), "most": max(figures)}


def is_true(row: dict[str, Any], pairs: Sequence[float]) -> bool:
    """Whether the pairs agree: an order by their median, a bound unless all lie below it, a figure where they meet."""
    if row["claim"] == "order":
        return statistics.median(pairs) > 1
    return (row["least"] is None or max(pairs) >= row["least"]) and (row["most"] is None or min(pairs) <= row["most"])
