"""The context of estimates: of their own page, and of their part of a measurement's page."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import QueryDict

from analysis.models import Device, Run, RunLog
from analysis.pages.run.estimate_cards import cards_shown
from analysis.pages.what_to_change.context import changes_context
from analysis.presentation import estimate_summary as summary
from analysis.presentation.charts import chart_of
from analysis.presentation.estimate_error import compare_to_estimate
from analysis.presentation.filled_memory import filled_memory
from analysis.presentation.frontier import frontier_plot, frontier_shown
from analysis.presentation.stored_estimate import StoredEstimate, read_estimate, read_estimates
from analysis.presentation.stored_result import StoredResult
from analysis.runs.frontier import measured_sizes
from analysis.runs.gpu_catalog import prices


def estimate_context(run: Run, query: QueryDict, user: User | None = None) -> dict[str, Any]:
    """Return the context of a finished estimate: of one card, or of all."""
    assert run.result is not None  # it is finished
    estimates, current = read_estimates(run.result), int(run.spec["current_batch_size"])
    has_device = Device.objects.enabled().allowing(run.requested_by).exists()
    context = {"current_batch_size": current, "has_device": has_device, "estimates": estimates}
    if len(estimates) == 1:
        return context | _one_card(estimates[0], run, current, user)
    return context | _all_cards(estimates, run, current, query)


def beside_measurement(data: dict[str, Any], result: StoredResult) -> dict[str, Any] | None:
    """Return the estimate made before this measurement, with its error; None without one."""
    if not data.get("estimate"):
        return None
    estimate = read_estimate(data["estimate"])
    how = [row for row in summary.how_rows(estimate) if row[0] not in ("Memory of the card", "Price")]
    of_the_answer = {None, *result.roles.values()}
    rows = compare_to_estimate(estimate, result)
    return {
        "rows": [row for row in rows if row.batch_size in of_the_answer],
        "more": [row for row in rows if row.batch_size not in of_the_answer],
        "how": how,
    }


def _one_card(estimate: StoredEstimate, run: Run, current: int, user: User | None) -> dict[str, Any]:
    price = prices().get(estimate.gpu_id)
    return {
        "estimate": estimate,
        "title": summary.headline(estimate, run.spec),
        "bars": summary.estimate_bars(estimate, current),
        "stack": summary.estimate_stack(estimate, current),
        "kind_rows": summary.kind_rows(estimate.points),
        "filled": filled_memory(estimate.breakdown),
        **changes_context(run, user),
        **_frontier(run, user),
        "how": summary.how_rows(estimate, price),
    }


def _frontier(run: Run, user: User | None) -> dict[str, Any]:
    """Return the part about several lengths; empty for an estimate without them."""
    stored = (run.result or {}).get("frontier")
    if not stored:
        return {}
    plot = frontier_plot(stored)
    return {
        "frontier": frontier_shown(stored, measured_sizes(run, user)),
        "frontier_chart": chart_of(plot) if plot else None,
    }


def _all_cards(estimates: list[StoredEstimate], run: Run, current: int, query: QueryDict) -> dict[str, Any]:
    first = estimates[0]
    rows = summary.gpu_rows(estimates, current, prices())
    left_out = list(RunLog.objects.of(run).filter(message__startswith="left out: "))
    how = [row for row in summary.how_rows(first) if row[0] not in ("Memory of the card", "Context", "Price", "Peak")]
    return {
        "title": summary.headline_of_all(estimates, run.spec, len(left_out)),
        "cards": cards_shown(rows, query),
        "how": how,
        "left_out": left_out,
        "calibrated_count": sum(estimate.is_calibrated for estimate in estimates),
    }
