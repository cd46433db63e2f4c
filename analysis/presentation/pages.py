"""What the page of a run that is over is given: the answer, or how it ended without one."""

from __future__ import annotations

from typing import Any

from analysis.assumptions import Assumptions
from analysis.charts import Curve, figure, memory_bars, memory_curve, throughput_curve
from analysis.models import Attempt, Measurement, Run, RunLog, State
from analysis.presentation import answer, memory, states, words
from analysis.presentation.curves import drawn, with_estimate
from analysis.presentation.estimate_pages import beside_measurement
from analysis.presentation.headline import headline
from analysis.presentation.live import LOG_LINES_SHOWN, curve_so_far, estimate_before, stored_probe_lines
from analysis.presentation.probes import ProbeKey, probe_key, probe_lines
from analysis.presentation.stored import StoredResult
from analysis.presentation.stored_estimate import read_estimate


def run_context(run: Run) -> dict[str, Any]:
    """What every run page shows, whatever the state."""
    return {
        "run": run,
        "model_name": words.model_name(run.model),
        "settings": words.settings_words(run.spec),
        "chip": states.chip(run),
        "place": words.run_place(run),
        "place_bytes": words.run_place_bytes(run),
    }


def over_context(run: Run) -> dict[str, Any]:
    """What every run that is over shows: the end of its log, and its attempts."""
    return {"log_lines": last_log_lines(run), "attempts": attempts_shown(run)}


def ended_context(run: Run) -> dict[str, Any]:
    """A run that ended without a result."""
    title, explanation = states.ending(run)
    probes = list(Measurement.objects.of(run))
    attempt = run.attempts.filter(number=run.attempt).first()
    curve, estimate = curve_so_far(run, attempt, probes), estimate_before(attempt)
    return {
        "title": title,
        "explanation": explanation if run.is_estimate else f"{explanation} {states.measured_words(len(probes))}",
        "advice": states.advice(run),
        "curve": curve,
        "drawings": drawn(curve) if curve else [],
        "estimate": estimate,
        "probe_lines": stored_probe_lines(run, probes, estimate),
    }


def result_context(run: Run, result: StoredResult, assumed: Assumptions) -> dict[str, Any]:
    """A finished run: the answer in the order it is read."""
    return {
        "result": result,
        "assumed": assumed,
        "headline": headline(result, assumed.savings),
        "not_certified": words.why_not_certified(result.boundary, result.spec),
        "unsteady": words.unsteady_words(result.unsteady_batch_sizes),
        "bars": memory_bars(
            waste=result.waste,
            current_batch_size=result.current_batch_size,
            current_is_refused=result.current_is_refused,
            recommended=result.recommended,
        ),
        "figures": answer.figures(result, assumed.savings),
        "suggestions": answer.suggestions(result),
        "paste": answer.paste(result),
        "paste_note": answer.paste_note(result),
        **_evidence(run, result),
    }


def _evidence(run: Run, result: StoredResult) -> dict[str, Any]:
    """What the answer rests on."""
    curves = [(curve, drawn(curve)) for curve in result_curves(run, result)]
    return {
        "curves": curves,
        "chart_data": {curve.key: figure(curve, drawings[0]) for curve, drawings in curves},
        "stack": memory.stack(result),
        "stacks": memory.stacks(result),
        "levels": memory.levels(result),
        "certificate": _certificate(run, result),
        "refusal": result.boundary.refusal,
        "beside": beside_measurement(run.result or {}, result),
        "timings": answer.timings(result),
        "environment": environment_rows(result),
        "is_accelerator": result.device.kind != "cpu",
        "probe_lines": probe_lines(result.probes, result.roles, carried_keys(run)),
    }


def _certificate(run: Run, result: StoredResult) -> list[answer.Evidence]:
    lines = answer.certificate(result)
    if run.result and run.result.get("estimate"):
        lines.append(answer.estimate_evidence(read_estimate(run.result["estimate"]), result))
    return lines


def carried_keys(run: Run) -> frozenset[ProbeKey]:
    """The probes of this run that an earlier attempt measured."""
    return frozenset(map(probe_key, Measurement.objects.of(run).filter(is_carried=True)))


def attempts_shown(run: Run) -> list[Attempt]:
    """Every attempt, where there is something to see: more than one, or one that gave no result."""
    attempts = list(run.attempts.select_related("device__host"))
    is_plain = len(attempts) == 1 and (not run.is_over or run.state == State.FINISHED)
    return [] if is_plain else attempts


def last_log_lines(run: Run) -> list[RunLog]:
    """The newest lines, oldest first."""
    return list(RunLog.objects.of(run).reverse()[:LOG_LINES_SHOWN])[::-1]


def environment_rows(result: StoredResult) -> list[tuple[str, str]]:
    """The environment as stored, in words; what is unknown is left out rather than shown empty."""
    device = result.device
    rows = [
        ("Device", f"{device.name} ({device.device})"),
        ("UUID", device.uuid),
        ("Driver", device.driver),
        ("Compute capability", device.compute_capability),
    ]
    rows += [(name.replace("_", " "), value) for name, value in result.environment.items()]
    return [(name, str(value)) for name, value in rows if value not in (None, "", {}, [])]


def result_curves(run: Run, result: StoredResult) -> list[Curve]:
    """Memory with the estimate that was made before, and speed; those that were measured."""
    told = (run.result or {}).get("estimate")
    peak = memory_curve(result.probes, limit_bytes=result.limit_bytes, roles=result.roles)
    curves = (
        with_estimate(peak, read_estimate(told) if told else None) if peak else None,
        throughput_curve(result.probes, roles=result.roles),
    )
    return [curve for curve in curves if curve is not None]
