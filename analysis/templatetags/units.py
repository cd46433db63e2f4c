"""The filters of `presentation/formatting.py`, for templates."""

import re

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from analysis.presentation import formatting
from engine.text.today import name_today

register = template.Library()
register.filter(formatting.bytes_text)
register.filter(formatting.round_bytes)
register.filter(formatting.duration)
register.filter(formatting.step_time)
register.filter(formatting.rate)
register.filter(formatting.factor)
register.filter(formatting.percent)
register.filter(formatting.round_percent)
register.filter(formatting.share_text)
register.filter(formatting.hours_text)
register.filter(formatting.usd)
register.filter(formatting.usd_closely)
register.filter(formatting.millions)
register.filter(formatting.number)
register.filter(formatting.utc)
register.filter(formatting.clock)
register.filter(formatting.ago)
register.filter(formatting.since)
register.filter(formatting.seconds_after)
register.filter(name_today)


@register.filter
def breakable(text: str) -> SafeString:
    """Let a line end after the dots and underscores of a long name, and so not within one of its words."""
    return mark_safe(re.sub(r"(?<=[A-Za-z*])([._])(?=[\w*])", r"\1<wbr>", escape(text)))  # noqa: S308 - escaped
