"""Numbers as text for people. The only place that rounds: everything else uses bytes, seconds and ratios.

An unknown figure is `None` and reads "not measured", never 0.
"""

from __future__ import annotations

import datetime as dt

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from engine.units import GIB, KIB, MIB, TIB, format_bytes

NOT_MEASURED = "not measured"
MINUTE, HOUR, DAY = 60, 3_600, 86_400


def bytes_text(size_bytes: float | None) -> str:
    """1610612736 -> "1.5 GiB"."""
    return NOT_MEASURED if size_bytes is None else format_bytes(size_bytes)


def round_bytes(size_bytes: float) -> str:
    """Write a figure that is round by choice, a limit or a tick: 8589934592 -> "8 GiB"."""
    return format_bytes(size_bytes).replace(".0 ", " ") if size_bytes else "0"


def exact_bytes_text(size_bytes: int) -> str:
    """Write a size for a form field, not rounded: the largest binary unit that divides it, "2GiB", else plain bytes."""
    for name, unit_bytes in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if size_bytes % unit_bytes == 0:
            return f"{size_bytes // unit_bytes}{name}"
    return str(size_bytes)


def duration(seconds: float | None) -> str:
    """133.2 -> "2 m 13 s"; below ten seconds with one decimal; whole minutes and hours without seconds."""
    if seconds is None:
        return NOT_MEASURED
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} m {whole % MINUTE:02d} s".removesuffix(" 00 s")
    return f"{whole // HOUR} h {whole % HOUR // MINUTE:02d} m".removesuffix(" 00 m")


def step_time(seconds: float | None) -> str:
    """0.01824 -> "18.2 ms"; from one second on in seconds."""
    if seconds is None:
        return NOT_MEASURED
    return f"{seconds:.2f} s" if seconds >= 1 else f"{_significant(seconds * 1000)} ms"


def rate(samples_per_second: float | None) -> str:
    """Write samples per second with three significant figures, the unit left to the column's head."""
    return NOT_MEASURED if samples_per_second is None else _significant(samples_per_second)


def factor(ratio: float | None) -> str:
    """1.6193 -> "1.62x"; a ratio of ten or more with at most one decimal."""
    if ratio is None:
        return NOT_MEASURED
    return f"{ratio:.2f}x" if ratio < 10 else times(ratio)


def times(ratio: float) -> str:
    """How many times as large, where the exact figure stands beside it: 8.0 -> "8x", 30.625 -> "30.6x"."""
    return f"{_trimmed(ratio)}x"


def factor_range(low: float | None, high: float | None) -> str:
    """Write the interval of a ratio: "1.36 to 1.42x"; empty where it is not known."""
    if low is None or high is None:
        return ""
    return f"{factor(low).removesuffix('x')} to {factor(high)}"


def rate_range(low: float | None, high: float | None) -> str:
    """Write the interval of a speed: "15.0 to 17.0"; empty where it is not known."""
    return "" if low is None or high is None else f"{_significant(low)} to {_significant(high)}"


def usd_range(low_usd: float | None, high_usd: float | None) -> str:
    """Write the interval of an amount: "$1,190 to $1,270"; empty where it is not known. Cents only where they tell."""
    if low_usd is None or high_usd is None:
        return ""
    decimals = 0 if max(abs(low_usd), abs(high_usd)) >= 1000 else 2
    return " to ".join(_dollars(round(amount, decimals), decimals) for amount in (low_usd, high_usd))


def _dollars(amount_usd: float, decimals: int) -> str:
    return f"{'−' if amount_usd < 0 else ''}${abs(amount_usd):,.{decimals}f}"


def round_percent(fraction: float) -> str:
    """Write a share that is round by choice: 0.05 -> "5 %"."""
    return f"{fraction * 100:.4g} %"


def percent(fraction: float | None) -> str:
    """0.924 -> "92.4 %"."""
    return NOT_MEASURED if fraction is None else f"{fraction * 100:.1f} %"


def usd(amount_usd: float | None) -> str:
    """1.592 -> "$1.59"; a positive amount below half a cent -> "less than $0.01"."""
    if amount_usd is None:
        return NOT_MEASURED
    size = abs(amount_usd)
    if 0 < size < 0.005:
        return "less than $0.01"
    sign = "−" if amount_usd < 0 else ""
    return f"{sign}${size:,.0f}" if size >= 1000 else f"{sign}${size:,.2f}"


def usd_closely(amount_usd: float | None) -> str:
    """Write a small cost that is compared with others: 0.1553 -> "$0.155"."""
    return NOT_MEASURED if amount_usd is None else f"${_significant(amount_usd)}"


def millions(count: int) -> str:
    """109483778 -> "109 M"."""
    return f"{_significant(count / 1_000_000)} M"


def number(value: float | None) -> str:
    """Write a plain figure without a needless ".0": 2.0 -> "2", 1024 -> "1,024"."""
    if value is None:
        return NOT_MEASURED
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,g}"


def utc(moment: dt.datetime | None) -> SafeString | str:
    """Write a <time> that shows minutes in UTC and carries the exact instant."""
    if moment is None:
        return ""
    exact = moment.astimezone(dt.UTC)
    text = f"{exact:%Y-%m-%d %H:%M} UTC"
    return format_html('<time datetime="{}">{}</time>', exact.isoformat(timespec="seconds"), text)


def clock(moment: dt.datetime) -> str:
    """Write the time of day of a log line, in UTC."""
    return f"{moment.astimezone(dt.UTC):%H:%M:%S}"


def ago(moment: dt.datetime | None) -> SafeString | str:
    """Write a <time> that says how long ago, with the exact instant in its datetime and title."""
    if moment is None:
        return "never"
    exact = moment.astimezone(dt.UTC).isoformat(timespec="seconds")
    text = describe_elapsed((timezone.now() - moment).total_seconds())
    return format_html('<time datetime="{0}" title="{0}">{1}</time>', exact, text)


def since(moment: dt.datetime | None) -> str:
    """How long something has been going on: "2 m 13 s"."""
    return duration(None if moment is None else max(0.0, (timezone.now() - moment).total_seconds()))


def seconds_after(moment: dt.datetime, start: dt.datetime) -> float:
    """Return the span between two moments, for `duration`."""
    return (moment - start).total_seconds()


def describe_elapsed(seconds: float) -> str:
    """75 -> "1 min ago"."""
    if seconds < 5:
        return "just now"
    for name, size in (("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", 1)):
        if seconds >= size:
            return f"{int(seconds // size)} {name} ago"
    return "just now"


def _significant(value: float) -> str:
    """Three significant figures without an exponent: 0.482, 9.81, 61.2, 612, 1,234."""
    for limit, decimals in ((0.9995, 3), (9.995, 2), (99.95, 1)):
        if abs(value) < limit:
            return f"{value:.{decimals}f}"
    return f"{value:,.0f}"


def _trimmed(value: float) -> str:
    """One decimal, dropped where it is zero: 24.0 -> "24", 26.3 -> "26.3"."""
    return f"{value:.1f}".removesuffix(".0")
