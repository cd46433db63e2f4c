"""Numbers as text for people, and the only place that rounds; None reads "not measured", never 0."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from engine.text.units import (
    format_bytes,
    format_duration,
    format_factor,
    format_percent,
    format_significant,
    format_usd,
)
from engine.text.units import rate_range as rate_range
from engine.text.units import round_bytes as round_bytes
from engine.text.units import round_percent as round_percent
from engine.text.units import times as times
from engine.text.units import usd_range as usd_range

NOT_MEASURED = "not measured"
MINUTE, HOUR, DAY = 60, 3_600, 86_400


def _if_measured(write: Callable[[float], str]) -> Callable[[float | None], str]:
    return lambda figure: NOT_MEASURED if figure is None else write(figure)


duration, factor, percent, usd = map(_if_measured, (format_duration, format_factor, format_percent, format_usd))
rate = _if_measured(format_significant)
"""Writes samples per second with three significant figures, the unit left to the column's head."""


def bytes_text(size_bytes: float | None, limit_bytes: int | None = None) -> str:
    """1610612736 -> "1.5 GiB"; with the decimals in which it differs from the limit."""
    return NOT_MEASURED if size_bytes is None else format_bytes(size_bytes, limit_bytes or None)


def step_time(seconds: float | None) -> str:
    """0.01824 -> "18.2 ms"; from one second on in seconds."""
    if seconds is None:
        return NOT_MEASURED
    return f"{seconds:.2f} s" if seconds >= 1 else f"{format_significant(seconds * 1000)} ms"


def share_text(fraction: float | None) -> str:
    """Write a share of the time; one that is above nothing never reads as nothing."""
    return "less than 0.1 %" if fraction and 0 < fraction < 0.001 else percent(fraction)


def percent_more(fraction: float) -> str:
    """Write a difference: 0.0617 -> "+6.2 %", -0.254 -> "−25.4 %"."""
    rounded = round(fraction * 100, 1)
    return f"{'+' if rounded > 0 else '−' if rounded < 0 else ''}{abs(rounded):.1f} %"


def percent_estimated(fraction: float) -> str:
    """0.9179 -> "91 %": rounded down, because an estimate is no closer, and no more is claimed than is so."""
    return f"{int(100 * fraction)} %"


def usd_closely(amount_usd: float | None) -> str:
    """Write a small cost that is compared with others: 0.1553 -> "$0.155"."""
    return NOT_MEASURED if amount_usd is None else f"${format_significant(amount_usd)}"


def millions(count: int) -> str:
    """109483778 -> "109 M"."""
    return f"{format_significant(count / 1_000_000)} M"


def number(value: float | None) -> str:
    """Write a plain figure without a needless ".0": 2.0 -> "2", 1024 -> "1,024"."""
    if value is None:
        return NOT_MEASURED
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,g}"


def hours_text(hours: float) -> str:
    """Write a span in hours, below 60 rounded minutes in minutes; one that is above nothing never reads as nothing."""
    minutes = round(hours * 60)
    if minutes >= 60:
        return f"{hours:,.1f} h"
    return "less than 1 min" if 0 < hours < 1 / 60 else f"{minutes} min"


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


def day_and_clock(moment: dt.datetime) -> str:
    """Write a moment in UTC to the minute: "14:30 UTC" today, "2026-03-01 14:30 UTC" before."""
    exact = moment.astimezone(dt.UTC)
    is_today = exact.date() == timezone.now().astimezone(dt.UTC).date()
    return f"{exact:%H:%M} UTC" if is_today else f"{exact:%Y-%m-%d %H:%M} UTC"


def ago(moment: dt.datetime | None) -> SafeString | str:
    """Write a <time> that says how long ago, after a week the date, with the exact instant in datetime and title."""
    if moment is None:
        return "never"
    exact, age = moment.astimezone(dt.UTC).isoformat(timespec="seconds"), timezone.now() - moment
    text = describe_elapsed(age.total_seconds()) if age.days < 7 else exact[:10]
    return format_html('<time datetime="{0}" title="{0}">{1}</time>', exact, text)


def since(moment: dt.datetime | None) -> str:
    """Write how long something has been going on: "2 min 13 s"."""
    return duration(None if moment is None else max(0.0, (timezone.now() - moment).total_seconds()))


def seconds_after(moment: dt.datetime, start: dt.datetime) -> float:
    return (moment - start).total_seconds()


def describe_elapsed(seconds: float) -> str:
    """75 -> "1 min ago"."""
    if seconds < 5:
        return "just now"
    for name, size in (("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", 1)):
        if seconds >= size:
            return f"{int(seconds // size)} {name} ago"
    return "just now"
