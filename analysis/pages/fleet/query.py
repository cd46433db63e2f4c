"""The query string of the fleet page."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django import forms

from analysis.http.query_string import StrictQueryForm

RANGES = (7, 30, 90)
_DEFAULT_DAYS = 30


class FleetQuery(StrictQueryForm):
    """`?host=lab-1&days=7`: one host, and the days over which use is shown."""

    host = forms.CharField(required=False)
    days = forms.ChoiceField(choices=[(str(days), str(days)) for days in RANGES], initial=str(_DEFAULT_DAYS))

    @cached_property
    def _valid(self) -> dict[str, Any]:
        self.full_clean()
        return self.cleaned_data

    @property
    def host_name(self) -> str:
        return str(self._valid.get("host") or "")

    @property
    def day_count(self) -> int:
        return int(self._valid.get("days") or _DEFAULT_DAYS)
