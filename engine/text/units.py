"""Sizes, ratios, money and time as text. Inside the engine all sizes are integers in bytes."""

from __future__ import annotations

import math
import re

KIB, MIB, GIB, TIB = 1024, 1024**2, 1024**3, 1024**4
_FACTORS = {"": 1, "B": 1, "KIB": KIB, "MIB": MIB, "GIB": GIB, "TIB": TIB}
_FACTORS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_PATTERN = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z]{0,3})\s*", re.ASCII)
BYTES_ALLOWED = "a size such as 24GiB, 512MiB, 24GB (10^9) or a whole number of bytes"


def parse_bytes(text: str) -> int:
    """Read "24GiB" as 25769803776, and GB as a decimal unit. Raises ValueError for anything but a positive size."""
    match = _PATTERN.fullmatch(text)
    factor = _FACTORS.get(match[2].upper()) if match else None
    if match is None or factor is None:
        raise ValueError(f"{text!r} is not a size; give {BYTES_ALLOWED}")
    size = int(float(match[1]) * factor) if "." in match[1] else int(match[1]) * factor
    if size <= 0:
        raise ValueError(f"{text!r} is not a size above zero; give {BYTES_ALLOWED}")
    return size


def format_bytes(size: float, beside: float | None = None) -> str:
    """Write a size in the largest binary unit that keeps the figure above one, with one decimal: ``1.5 GiB``.

    `beside` is a limit: where both would look the same and are not, the decimals in which they differ are written.

    >>> format_bytes(268473139, beside=2**28)
    '256.04 MiB'
    """
    for name, factor in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(size) >= factor:
            other = size if beside is None else beside
            places = (n for n in range(1, 5) if size == other or f"{size / factor:.{n}f}" != f"{other / factor:.{n}f}")
            return f"{size / factor:.{next(places, 4)}f} {name}"
    return f"{size:.0f} B"


def round_bytes(size: float) -> str:
    """Write a figure that is round by choice, a limit or a tick: 8589934592 -> "8 GiB"."""
    return format_bytes(size).replace(".0 ", " ") if size else "0"


def exact_bytes(size: int) -> str:
    """Write a size as it is typed, not rounded: the largest binary unit that divides it, "2GiB", else plain bytes."""
    for name, factor in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if size % factor == 0:
            return f"{size // factor}{name}"
    return str(size)


def describe_over(size: float, limit: float) -> str:
    """Write "256.0 MiB, 36.9 KiB over the limit of 256.0 MiB": rounded alone, the two may look the same."""
    return f"{format_bytes(size)}, {format_bytes(size - limit)} over the limit of {format_bytes(limit)}"


def format_factor(ratio: float) -> str:
    """Write 1.6193 as "1.62x"; a ratio of ten or more with at most one decimal."""
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.1f}".removesuffix(".0") + "x"


def times(ratio: float) -> str:
    """Write a ratio whose exact figures are shown too: 8.0 -> "8x", 30.625 -> "30.6x"."""
    return f"{ratio:.1f}".removesuffix(".0") + "x"


def format_factor_range(low: float | None, high: float | None) -> str:
    """Write the interval of a ratio: "1.36 to 1.42x"; empty where it is not known."""
    if low is None or high is None:
        return ""
    return f"{format_factor(low).removesuffix('x')} to {format_factor(high)}"


def format_usd(amount_usd: float) -> str:
    """Write 1.592 as "$1.59", from 1,000 on without cents; 0.001 as "less than $0.01", -0.001 as "more than −$0.01"."""
    size = abs(amount_usd)
    if 0 < size < 0.005:
        return "less than $0.01" if amount_usd > 0 else "more than −$0.01"
    sign = "−" if amount_usd < 0 else ""
    return f"{sign}${size:,.0f}" if size >= 1000 else f"{sign}${size:,.2f}"


def format_least_usd(amount_usd: float) -> str:
    """Write 0.609 as "$0.60": an amount that is a lower bound is never rounded up."""
    cents = math.floor(amount_usd * 100 + 1e-6)
    return format_usd(cents // 100 if cents >= 100_000 else cents / 100)


def format_most_usd(amount_usd: float) -> str:
    """Write 0.591 as "$0.60": an amount that is an upper bound is never rounded down."""
    cents = math.ceil(amount_usd * 100 - 1e-6)
    return format_usd(-(-cents // 100) if cents >= 100_000 else cents / 100)


def usd_range(low_usd: float | None, high_usd: float | None) -> str:
    """Write the interval of an amount: "$1,190 to $1,270"; empty where it is not known. Cents only where they tell."""
    if low_usd is None or high_usd is None:
        return ""
    decimals = 0 if max(abs(low_usd), abs(high_usd)) >= 1000 else 2
    amounts = (round(amount, decimals) for amount in (low_usd, high_usd))
    return " to ".join(f"{'−' if amount < 0 else ''}${abs(amount):,.{decimals}f}" for amount in amounts)


def format_significant(value: float) -> str:
    """Write three significant figures without an exponent: 0.482, 9.81, 61.2, 612, 1,234."""
    for limit, decimals in ((0.9995, 3), (9.995, 2), (99.95, 1)):
        if abs(value) < limit:
            return f"{value:.{decimals}f}"
    return f"{value:,.0f}"


def rate_range(low: float | None, high: float | None) -> str:
    """Write the interval of a speed: "15.0 to 17.0"; empty where it is not known."""
    return "" if low is None or high is None else f"{format_significant(low)} to {format_significant(high)}"


def round_percent(fraction: float) -> str:
    """Write a share that is round by choice: 0.05 -> "5 %"."""
    return f"{fraction * 100:.4g} %"


def format_percent(fraction: float) -> str:
    """0.924 -> "92.4 %"."""
    return f"{fraction * 100:.1f} %"


def format_duration(seconds: float) -> str:
    """133.2 -> "2 min 13 s"; below ten seconds with one decimal; whole minutes and hours without seconds."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s".removesuffix(" 0 s")
    return f"{whole // 3_600} h {whole % 3_600 // 60} min".removesuffix(" 0 min")


def sentence_case(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
