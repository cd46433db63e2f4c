"""What the run page is given: the live part while it runs, the answer once it is there."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from analysis.charts import NARROW, WIDE, Curve, draw, figure, memory_bars, memory_curve, memory_stack, throughput_curve
from analysis.models import Measurement, Run, RunLog, State
from analysis.presentation import answer, states, words
from analysis.presentation.headline import headline
from analysis.presentation.probes import probe_lines
from analysis.presentation.stored import StoredResult, read_result

LOG_LINES_SHOWN = 300


def run_context(run: Run) -> dict[str, Any]:
    """What every run page shows, whatever the state."""
    return {
        "run": run,
        "model_name": words.model_name(run.model),
        "settings": words.settings_words(run.spec),
        "chip": states.chip(run),
        "log_lines": last_log_lines(run),
    }


def live_context(run: Run) -> dict[str, Any]:
    """A queued or running run: where it stands and the probes as they land."""
    return {
        "phase_words": states.phase_words(run, _ahead_of(run)),
        "seen": seen(run),
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
        "probe_lines": probe_lines(result.probes, result.roles),
    }


def seen(run: Run) -> str:
    """Changes with every write to the run: a poller that shows this one needs no answer."""
    return f"{run.updated_at.timestamp():.6f}"


def stored_probe_lines(run: Run) -> list[Any]:
    """The probes of the last attempt as table rows; of the answer only today's size is known yet."""
    return probe_lines(Measurement.objects.of(run), {"current": run.spec.get("current_batch_size")})


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


def _ahead_of(run: Run) -> int:
    """How many runs the device has to finish before it takes this one."""
    if run.state != State.QUEUED:
        return 0
    is_ahead = Q(state=State.RUNNING) | Q(state=State.QUEUED, created_at__lt=run.created_at)
    return Run.objects.filter(is_ahead, device=run.device_id).count()


def _curves(result: StoredResult) -> list[Curve]:
    curves = (
        memory_curve(result.probes, limit_bytes=result.limit_bytes, roles=result.roles),
        throughput_curve(result.probes, roles=result.roles),
    )
    return [curve for curve in curves if curve is not None]
