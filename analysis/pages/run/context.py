"""The context of the page of a run: in any state, and of one that ended without a result."""

from __future__ import annotations

from typing import Any

from analysis.models import Attempt, Measurement, Run, RunLog, State
from analysis.pages.kinds import pages_of
from analysis.pages.run.live import LOG_LINES_SHOWN, measured_so_far
from analysis.presentation import labels, origin, run_state
from analysis.presentation.kinds import facts_of_run, presentation_of
from analysis.presentation.unreadable import UnreadableError


def run_context(run: Run) -> dict[str, Any]:
    kind = presentation_of(run)
    return {
        "run": run,
        "kind": kind,
        **({"section": "Estimates", "here": f"Estimate {run.pk}"} if kind.is_predicted else {}),
        "change_address": pages_of(run).change_address(run),
        "model_name": labels.model_name(run.model),
        "settings": facts_of_run(run),
        "chip": run_state.chip(run),
        "tab_title": run_state.tab_title(run),
        "place": kind.place(run),
        "place_bytes": kind.place_bytes(run),
        **origin.origin_context(run),
        "clock_text": origin.describe_clock(run),
    }


def over_context(run: Run) -> dict[str, Any]:
    lines = RunLog.objects.of(run).reverse()[:LOG_LINES_SHOWN]
    return {"log_lines": list(lines)[::-1], "attempts": attempts_shown(run)}


def ended_context(run: Run) -> dict[str, Any]:
    title, explanation = run_state.ending(run, State(run.state))
    if presentation_of(run).shows_probes:
        measured = "The measurements until then are below." if Measurement.objects.of(run).exists() else ""
        explanation = f"{explanation} {measured or 'Nothing had been measured by then.'}"
    advice = run_state.advice(run, has_log=RunLog.objects.of(run).exists())
    return {"title": title, "explanation": explanation, "advice": advice, **_measured_until_then(run)}


def unreadable_context(run: Run, why: UnreadableError) -> dict[str, Any]:
    return {
        "title": f"The result of run {run.pk} cannot be read",
        "explanation": f"It is stored as it came, and its JSON can be downloaded. {why}.",
        "advice": ["Measure again: a new run is a new result, and this page stays unchanged."],
        **_measured_until_then(run),
    }


def _measured_until_then(run: Run) -> dict[str, Any]:
    attempt = run.attempts.filter(number=run.attempt).first()
    return measured_so_far(run, attempt, list(Measurement.objects.of(run)))


def attempts_shown(run: Run) -> list[Attempt]:
    """Return all attempts if there are several, or a single one without a result."""
    attempts = list(run.attempts.select_related("device__host"))
    is_plain = len(attempts) == 1 and (not run.is_over or run.state == State.FINISHED)
    return [] if is_plain else attempts
