"""The pages of an estimate: for one GPU, or for all, of which the address says which are shown, and in which order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.http import QueryDict

from analysis.http.query_string import FlagField, StrictQueryForm, without_empty
from analysis.models import Device, Run, RunKind, RunLog
from analysis.pages.form_choices import places_offered
from analysis.pages.kinds.page import KindPages, Page
from analysis.pages.what_to_change.context import changes_context
from analysis.presentation import estimate_summary as summary
from analysis.presentation.estimate_summary import GpuRow, headline, headline_of_all
from analysis.presentation.filled_memory import filled_memory
from analysis.presentation.kinds import facts_of_run
from analysis.presentation.unreadable import read_stored
from analysis.presentation.what_to_change import frontier_plot, frontier_shown
from analysis.runs.earlier.what_to_change import devices_for, measured_sizes
from analysis.runs.gpu_catalog import Price, prices
from engine.describe.commands import describe_like, measure_command
from engine.estimate.largest import LABELS
from engine.questions.documents.estimated import Estimated, EstimatedCard
from engine.settings.profiles import PROFILES
from engine.settings.rank_settings import OF_STARTS


def _price(row: GpuRow) -> float:
    return row.price.per_hour_usd if row.price else math.inf


_SORTS: dict[str, tuple[str, bool, Callable[[GpuRow], Any]]] = {
    "fit": ("fits, cheapest first", False, lambda row: (not row.takes_current, _price(row))),
    "largest": ("largest batch size", True, lambda row: row.estimate.largest_batch_size or None),
    "safe": ("largest batch size with the margin", True, lambda row: row.estimate.safe_batch_size or None),
    "used": ("memory at your batch size", False, lambda row: row.memory_at_current),
    "price": ("price", False, lambda row: row.price.per_hour_usd if row.price else None),
    "memory": ("memory of the GPU", True, lambda row: row.estimate.gpu.total_bytes),
    "name": ("name", False, lambda row: row.name.lower()),
}
"""By key: its name in the form, whether the greatest comes first, and the value; GPUs without one come last."""
_DEFAULT = "fit"


class CardsForm(StrictQueryForm):
    card = forms.CharField(label="GPU", max_length=60, required=False, help_text="Part of its name.")
    sort = forms.ChoiceField(
        label="Sorted by", choices=[(key, text) for key, (text, *_) in _SORTS.items()], initial=_DEFAULT, required=False
    )
    fits = FlagField(label="Only GPUs that fit your batch size", required=False)


@dataclass(frozen=True, slots=True)
class Cards:
    """The rows to show of `count` in all, and the form that chose them; `asked` is the rest of the address."""

    form: CardsForm
    rows: Sequence[GpuRow]
    count: int
    asked: QueryDict

    @property
    def question(self) -> list[tuple[str, str]]:
        return [(name, value) for name, values in self.asked.lists() for value in values]

    @property
    def unpriced(self) -> int:
        return sum(row.price is None for row in self.rows)

    @property
    def sort(self) -> str:
        return _DEFAULT if self.form.problems else str(self.form.cleaned_data["sort"] or _DEFAULT)


def cards_context(
    estimates: Sequence[EstimatedCard],
    spec: Mapping[str, Any],
    left_out: Sequence[object],
    prices: Mapping[str, Price],
    query: QueryDict,
    asked: QueryDict | None = None,
) -> dict[str, Any]:
    """Return the table of all GPUs; `left_out` are the GPUs that cannot run the settings."""
    rows = summary.gpu_rows(estimates, int(spec["current_batch_size"]), prices)
    return {
        "title": headline_of_all(estimates, spec, len(left_out), prices),
        "cards": cards_shown(rows, query, asked),
        "calibrated_count": sum(each.gpu.calibrated for each in estimates),
    }


def cards_shown(rows: Sequence[GpuRow], query: QueryDict, asked: QueryDict | None = None) -> Cards:
    """Filter and sort the GPUs by the address; with an invalid address show all, and say what is wrong."""
    form, asked = CardsForm(without_empty(query)), asked or QueryDict()
    if form.problems:
        return Cards(form, rows, len(rows), asked)
    wanted = form.cleaned_data
    words = wanted["card"].lower().split()
    kept = [
        row
        for row in rows
        if all(word in row.name.lower() for word in words) and (row.takes_current or not wanted["fits"])
    ]
    _, is_descending, value = _SORTS[wanted["sort"] or _DEFAULT]
    known = sorted((row for row in kept if value(row) is not None), key=value, reverse=is_descending)
    return Cards(form, [*known, *(row for row in kept if value(row) is None)], len(rows), asked)


class Estimate(KindPages):
    views = "analysis.pages.estimates.views"
    form_label = "Estimate for any GPU"
    form_leaves_out = (
        *("device", "time_budget_seconds", "reserve_percent", "reserve_bytes", "accepts_shared_device"),
        *OF_STARTS,
    )
    form_css_class = "only-estimate"
    form_kind = RunKind.ESTIMATE

    def result_page(self, run: Run, query: QueryDict, user: User | None = None) -> Page:
        found, current = read_stored(Estimated.from_dict, run.result), int(run.spec["current_batch_size"])
        estimates = found.estimates
        devices = Device.objects.enabled().allowing(run.requested_by)
        is_of_one, filters = len(estimates) == 1, query.copy()
        is_whole = filters.pop("print", None) == ["all"]
        could_measure = devices_for(run, devices) if is_of_one else devices
        has_device = bool(places_offered(could_measure, count=run.spec.get("ranks", 1)))
        context: dict[str, Any] = {
            "paper": "" if is_whole else " no-print",
            "current_batch_size": current,
            "has_device": has_device,
            "measure_command": measure_command(run.spec) if is_of_one and not has_device else "",
            "estimates": estimates,
            "settings": facts_of_run(run),
        }
        if is_of_one:
            context |= _one_card(found, run, user)
        else:
            context |= _all_cards(estimates, run, filters)
        if (like := run.spec.get("like")) in PROFILES:
            context["how"] += [("Settings of", describe_like(like))]
        return "analysis/run/estimate.html", context


def _one_card(found: Estimated, run: Run, user: User | None) -> dict[str, Any]:
    """Return the estimate, of which filters tell, and the what-ifs that were asked for."""
    estimate = found.estimates[0]
    context = {
        "title": headline(estimate, run.spec),
        "estimate": estimate,
        "stack": summary.estimate_stack(estimate, int(run.spec["current_batch_size"])),
        "filled": filled_memory(estimate.breakdown),
        "how": summary.how_rows(estimate, prices().get(estimate.gpu.id)),
        **changes_context(run, user),
    }
    if found.frontier is not None:
        context["frontier"] = frontier_shown(found.frontier, measured_sizes(run, user))
        context["frontier_chart"] = frontier_plot(found.frontier)
    if (largest := found.largest) is not None:
        context |= {"title": largest.text, "largest": largest, "largest_label": LABELS[largest.setting]}
    return context


def _all_cards(estimates: Sequence[EstimatedCard], run: Run, query: QueryDict) -> dict[str, Any]:
    left_out = list(RunLog.objects.of(run).filter(message__startswith="left out: "))
    how = summary.how_rows(estimates[0])
    return {
        **cards_context(estimates, run.spec, left_out, prices(), query),
        "how": [row for row in how if row[0] not in ("Memory of the GPU", "Context", "Price", "Peak")],
        "left_out": left_out,
    }
