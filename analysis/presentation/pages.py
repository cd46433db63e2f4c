"""What the run page is given: the live part while it runs, the answer once it is there."""

from __future__ import annotations

from typing import Any

from analysis.charts import NARROW, WIDE, Curve, draw, figure, memory_bars, memory_curve, memory_stack, throughput_curve
from analysis.forecast import Turn, turns
from analysis.models import Attempt, Measurement, Run, RunLog, State
from analysis.presentation import answer, states, words
from analysis.presentation.headline import headline
from analysis.presentation.probes import ProbeKey, probe_key, probe_lines
from analysis.presentation.stored import StoredResult, read_result

LOG_LINES_SHOWN = 300


def run_context(run: Run) -> dict[str, Any]:
    """What every run page shows, whatever the state."""
    return {
        "run": run,
        "model_name": words.model_name(run.model),
        "settings": words.settings_words(run.spec),
        "chip": states.chip(run),
        "place": words.run_place(run),
        "place_bytes": words.run_place_bytes(run),
        "log_lines": last_log_lines(run),
    }


def live_context(run: Run) -> dict[str, Any]:
    """A queued or running run: where it stands and the probes as they land."""
    turn = turns([run]).get(run.pk)
    return {
        "phase_words": states.phase_words(run, turn),
        "seen": seen(run, turn),
        "probe_lines": stored_probe_lines(run),
    }


def ended_context(run: Run) -> dict[str, Any]:
    """A run that ended without a result."""
    title, explanation = states.ending(run)
    return {"title": title, "explanation": explanation, "probe_lines": stored_probe_lines(run)}


def result_context(run: Run) -> dict[str, Any]:
    """A finished run: the answer in the order it is read."""
    result = read_result(run.result)
    stack = answer.stack_probe(result)
    kinds = stack.memory_by_kind if stack else None
    curves = _curves(result)
    return {
        "result": result,
        "headline": headline(result),
        "not_certified": words.why_not_certified(result.boundary, result.spec),
        "unsteady": words.unsteady_words(result.unsteady_batch_sizes),
        "bars": memory_bars(
            waste=result.waste,
            current_batch_size=result.current_batch_size,
            current_is_refused=result.current_is_refused,
            recommended=result.recommended,
        ),
        "figures": answer.figures(result),
        "curves": [(curve, [draw(curve, size) for size in (WIDE, NARROW)]) for curve in curves],
        "chart_data": {curve.key: figure(curve) for curve in curves},
        "stack": memory_stack(stack.batch_size, kinds, peak_phase=stack.peak_phase) if stack and kinds else None,
        "suggestions": answer.suggestions(result),
        "certificate": answer.certificate(result),
        "refusal": result.boundary.refusal,
        "paste": answer.paste(result),
        "paste_note": answer.paste_note(result),
        "timings": answer.timings(result),
        "environment": environment_rows(result),
        "is_accelerator": result.device.kind != "cpu",
        "probe_lines": probe_lines(result.probes, result.roles, carried_keys(run)),
    }


def seen(run: Run, turn: Turn | None) -> str:
    """Changes with every write to the run and with its turn: a poller that shows this one needs no answer."""
    return f"{run.updated_at.timestamp():.6f}" + (f"-{turn.position}" if turn else "")


def stored_probe_lines(run: Run) -> list[Any]:
    """The probes of the last attempt as table rows; of the answer only today's size is known yet."""
    rows = list(Measurement.objects.of(run))
    carried = frozenset(map(probe_key, (row for row in rows if row.is_carried)))
    return probe_lines(rows, {"current": run.spec.get("current_batch_size")}, carried)


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


def _curves(result: StoredResult) -> list[Curve]:
    curves = (
        memory_curve(result.probes, limit_bytes=result.limit_bytes, roles=result.roles),
        throughput_curve(result.probes, roles=result.roles),
    )
    return [curve for curve in curves if curve is not None]
