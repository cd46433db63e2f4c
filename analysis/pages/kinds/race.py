"""The pages of a race."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import QueryDict

from analysis.charts.race import race_plot
from analysis.models import Run
from analysis.pages.kinds.page import KindPages, Page
from analysis.presentation.kinds import presentation_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class Race(KindPages):
    def change_address(self, run: Run) -> str:
        return ""

    def result_page(self, run: Run, query: QueryDict, user: User | None = None) -> Page:
        race = presentation_of(run).race(run)
        chart = race_plot([each.row for each in race.table if not each.is_on_top], race.size_of_today)
        return "analysis/run/race.html", {"race": race, "chart": chart}
