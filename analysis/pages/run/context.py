"""The context of the page of a run that is over: its result, or how it ended without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.models import Attempt, Measurement, Run, RunLog, State
from analysis.pages.run.estimate_context import beside_measurement
from analysis.pages.run.live import LOG_LINES_SHOWN, chart_so_far, estimate_before, stored_probe_lines
from analysis.pages.what_to_change.context import change_start
from analysis.presentation import labels, memory_breakdown, origin, result_summary, run_state
from analysis.presentation.assumptions import Assumptions
from analysis.presentation.charts import Plot, chart_of, memory_bars, memory_plot, speed_plot
from analysis.presentation.filled_memory import filled_memory
from analysis.presentation.headline import headline
from analysis.presentation.nothing_to_gain import nothing_to_gain
from analysis.presentation.probe_rows import ProbeKey, probe_key, probe_lines
from analysis.presentation.stored_estimate import read_estimate
from analysis.presentation.stored_result import StoredResult
from analysis.presentation.stored_validation import StoredValidation, read_validation


def run_context(run: Run) -> dict[str, Any]:
    """Return the context of every run page, in any state."""
    return {
        "run": run,
        "model_name": labels.model_name(run.model),
        "settings": labels.settings_of_run(run),
        "chip": run_state.chip(run),
        "tab_title": run_state.tab_title(run),
        "place": labels.run_place(run),
        "place_bytes": labels.run_place_bytes(run),
        "origin": origin.describe_origin(run),
        "trust_text": origin.describe_trust(run),
        "clock_text": origin.describe_clock(run),
    }


def over_context(run: Run) -> dict[str, Any]:
    """Return the context of every run that is over: the end of its log, and its attempts."""
    return {"log_lines": last_log_lines(run), "attempts": attempts_shown(run)}


def ended_context(run: Run) -> dict[str, Any]:
    """Return the context of a run that ended without a result."""
    title, explanation = run_state.ending(run, State(run.state))
    probes = list(Measurement.objects.of(run))
    attempt = run.attempts.filter(number=run.attempt).first()
    estimate = estimate_before(attempt)
    return {
        "title": title,
        "explanation": explanation
        if not run.is_measurement
        else f"{explanation} {run_state.describe_measured(len(probes))}",
        "advice": run_state.advice(run),
        "chart": chart_so_far(run, attempt, probes),
        "estimate": estimate,
        "probe_lines": stored_probe_lines(run, probes, estimate),
        "has_speeds": any(probe.samples_per_second is not None for probe in probes),
    }


def validation_context(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context of a finished validation: its checks, and what they rest on."""
    validation = read_validation(result)
    return {"validation": validation, "environment": environment_rows(validation)}


def result_context(run: Run, result: StoredResult, assumed: Assumptions) -> dict[str, Any]:
    """Return the context of a finished run: the result, in the order of the page."""
    return {
        "result": result,
        "assumed": assumed,
        "headline": headline(result, assumed.savings),
        "not_certified": labels.why_not_certified(result.boundary, result.spec),
        "unsteady": labels.describe_unsteady(result.unsteady_batch_sizes),
        "reserve": result_summary.describe_reserve(result),
        "timing": result_summary.describe_timing(result),
        "bars": memory_bars(
            waste=result.waste,
            current_batch_size=result.current_batch_size,
            current_is_refused=result.current_is_refused,
            recommended=result.recommended,
        ),
        "figures": result_summary.figures(result, assumed.savings),
        "nothing_to_gain": nothing_to_gain(result),
        "need": result_summary.need(result),
        "suggestions": result_summary.suggestions(result),
        "paste": result_summary.paste(result),
        "training_rows": result_summary.training_rows(result),
        "loader_limit": result_summary.loader_limit(result),
        "paste_note": result_summary.paste_note(result),
        **_evidence(run, result),
    }


def _evidence(run: Run, result: StoredResult) -> dict[str, Any]:
    """Return the evidence of the result."""
    return {
        "charts": [chart_of(plot) for plot in result_plots(run, result)],
        "stack": memory_breakdown.stack(result),
        "stacks": memory_breakdown.stacks(result),
        "levels": memory_breakdown.levels(result),
        "filled": filled_memory(result.memory_breakdown),
        "certificate": _certificate(run, result),
        "refusal": result.boundary.refusal,
        "change_start": change_start(run, is_refused=result.current_is_refused),
        "beside": beside_measurement(run.result or {}, result),
        "timings": result_summary.timings(result),
        "environment": environment_rows(result),
        "is_accelerator": result.device.kind != "cpu",
        "probe_lines": probe_lines(result.probes, result.roles, carried_keys(run)),
    }


def _certificate(run: Run, result: StoredResult) -> list[result_summary.Evidence]:
    lines = result_summary.certificate(result)
    if run.result and run.result.get("estimate"):
        lines.append(result_summary.estimate_evidence(read_estimate(run.result["estimate"]), result))
    return lines


def carried_keys(run: Run) -> frozenset[ProbeKey]:
    """Return the probes of this run that an earlier attempt measured."""
    return frozenset(map(probe_key, Measurement.objects.of(run).filter(is_carried=True)))


def attempts_shown(run: Run) -> list[Attempt]:
    """Return all attempts if there is more than one, or one that gave no result."""
    attempts = list(run.attempts.select_related("device__host"))
    is_plain = len(attempts) == 1 and (not run.is_over or run.state == State.FINISHED)
    return [] if is_plain else attempts


def last_log_lines(run: Run) -> list[RunLog]:
    """Read the newest lines, oldest first."""
    return list(RunLog.objects.of(run).reverse()[:LOG_LINES_SHOWN])[::-1]


def environment_rows(result: StoredResult | StoredValidation) -> list[tuple[str, str]]:
    """Write the stored environment as text, without unknown facts."""
    device = result.device
    rows = [
        ("Device", f"{device.name} ({device.device})"),
        ("UUID", device.uuid),
        ("Driver", device.driver),
        ("Compute capability", device.compute_capability),
    ]
    rows += [(name.replace("_", " "), value) for name, value in result.environment.items()]
    return [(name, str(value)) for name, value in rows if value not in (None, "", {}, [])]


def result_plots(run: Run, result: StoredResult) -> list[Plot]:
    """Return the plots of memory, with the earlier estimate, and of speed, if measured."""
    stored = (run.result or {}).get("estimate")
    estimate = read_estimate(stored) if stored else None
    peak = memory_plot(result.probes, limit_bytes=result.limit_bytes, roles=result.roles, estimate=estimate)
    # where speeds could not be distinguished, their curve would show the load of other work
    speed = None
    if result.is_speed_measurable and result.training is None:  # only two sizes of a command are compared
        speed = speed_plot(result.probes, roles=result.roles, intervals=result.speed_intervals)
    return [plot for plot in (peak, speed) if plot is not None]
