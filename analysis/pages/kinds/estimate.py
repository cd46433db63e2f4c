"""The pages of an estimate: for one GPU, or for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.http import QueryDict

from analysis.models import Device, Run, RunKind, RunLog
from analysis.pages.form_choices import places_offered
from analysis.pages.kinds.estimate_cards import card_context, cards_context
from analysis.pages.kinds.page import KindPages, Page
from analysis.pages.what_to_change.context import changes_context
from analysis.presentation import estimate_summary as summary
from analysis.presentation.filled_memory import filled_memory
from analysis.presentation.kinds import facts_of_run
from analysis.presentation.unreadable import read_stored
from analysis.presentation.what_to_change import frontier_plot, frontier_shown
from analysis.runs.earlier.what_to_change import devices_for, measured_sizes
from analysis.runs.gpu_catalog import prices
from engine.describe.commands import measure_command
from engine.describe.profile import describe_like
from engine.documents.estimated import Estimated, EstimatedCard
from engine.estimate.largest import LABELS
from engine.settings.profiles import PROFILES
from engine.settings.rank_settings import OF_STARTS


class Estimate(KindPages):
    """It needs no device, and its result is that of one GPU, or of all."""

    views = "analysis.pages.estimates.views"
    form_label = "Estimate for any GPU"
    form_leaves_out = ("device", "time_budget_seconds", "reserve_percent", "accepts_shared_device", *OF_STARTS)
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
            context |= _one_card(found, run, current, user)
        else:
            context |= _all_cards(estimates, run, filters)
        if (like := run.spec.get("like")) in PROFILES:
            context["how"] += [("Settings of", describe_like(like))]
        return "analysis/run/estimate.html", context


def _one_card(found: Estimated, run: Run, current: int, user: User | None) -> dict[str, Any]:
    estimate = found.estimates[0]
    price = prices().get(estimate.gpu.id)
    return {
        **card_context(estimate, run.spec, current),
        "key_figures": summary.key_figures(estimate, current),
        "stack": summary.estimate_stack(estimate, current),
        "kind_rows": summary.kind_rows(estimate.points),
        "filled": filled_memory(estimate.breakdown),
        **_what_ifs(found, run, user),
        "how": summary.how_rows(estimate, price),
    }


def _what_ifs(found: Estimated, run: Run, user: User | None) -> dict[str, Any]:
    context = changes_context(run, user)
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
