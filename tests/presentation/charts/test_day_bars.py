"""The dates below the bars of days."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from analysis.presentation.charts.day_bars import DATES_MAX, day_marks


@pytest.mark.parametrize("count", [1, 2, 7, 30, 90])
def test_a_few_days_are_named_at_their_bars_and_none_beside_today(count: int) -> None:
    days = [date(2026, 11, 27) - timedelta(days=count - 1 - place) for place in range(count)]
    *named, last = day_marks(days)
    assert (last.text, last.x) == ("today", "100%")
    assert len(named) <= DATES_MAX
    for mark in named:
        place = int(float(mark.x.rstrip("%")) / 100 * count)
        assert mark.text == f"{days[place]:%d %b}".lstrip("0")
        assert float(mark.x.rstrip("%")) < 90
