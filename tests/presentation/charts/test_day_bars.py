"""The dates below the bars of days."""

import re
from datetime import date, timedelta

import pytest

from analysis.presentation.charts.sparkline import DATES_MAX, day_marks


@pytest.mark.parametrize("count", [1, 2, 7, 30, 90])
def test_a_few_days_are_named_at_their_bars_and_none_beside_today(count: int) -> None:
    days = [date(2026, 11, 27) - timedelta(days=count - 1 - place) for place in range(count)]
    *named, last = re.findall(r' x="([\d.]+)%"[^>]*>([^<]+)<', day_marks(days))
    assert last == ("100", "today")
    assert len(named) <= DATES_MAX
    for x, text in named:
        assert text == f"{days[int(float(x) / 100 * count)]:%d %b}".lstrip("0")
        assert float(x) < 90
