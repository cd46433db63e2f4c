"""The pages of a measurement: its result, in the order of the page."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.http import QueryDict

from analysis.models import Measurement as Probes
from analysis.models import Run, RunKind
from analysis.pages.kinds.page import KindPages, Page
from analysis.pages.what_to_change.context import change_start
from analysis.presentation import estimate_summary, memory_breakdown, result_summary
from analysis.presentation.charts.bars import memory_bars
from analysis.presentation.charts.curves import memory_plot, rounds_plot, speed_plot
from analysis.presentation.charts.plots import Plot
from analysis.presentation.estimate_error import compare_to_estimate
from analysis.presentation.figures import Assumptions, assumptions, figures, nothing_to_gain
from analysis.presentation.filled_memory import filled_memory
from analysis.presentation.kinds import presentation_of
from analysis.presentation.probe_rows import probe_key, probe_lines
from analysis.presentation.result_summary import headline, reach
from analysis.presentation.unreadable import UnreadableError, read_stored
from analysis.runs.earlier.races import OF_SCRIPTS, OF_SETTINGS, newest_race
from engine.describe.boundary import certificate_lines, is_today_refused, why_not_certified
from engine.describe.does_not_fit import ways_to_fit
from engine.describe.key_figures import key_figures
from engine.describe.rank_peaks import rank_peaks
from engine.describe.speed import was_compared
from engine.documents.measured import Measured
from engine.documents.raced import AnyRace
from engine.documents.validated import Validated
from engine.results.result import Reason, Savings
from engine.tune.faster.command import again_command, faster_command
from engine.tune.training import stated_throughputs

_INTERNAL = frozenset({"torchvision_schemas_declared", "run_key"})
"""Facts of the environment that only the engine and the portal understand."""


class Measurement(KindPages):
    form_label = "Measure on a device here"

    def result_page(self, run: Run, query: QueryDict, user: User | None = None) -> Page:
        result, assumed = read_stored(Measured.from_dict, run.result), query.copy()
        is_whole = assumed.pop("print", None) == ["all"]
        context = _result_context(run, result, assumptions(result, assumed))
        return "analysis/run/result.html", context | {"paper": "" if is_whole else " no-print"}


def primary_action(run: Run, result: Measured, *, has_paste: bool, can_change: bool, again_command: str = "") -> str:
    """Return the one next step that a result offers, by its name in the template `primary.html`."""
    sizes = [point.batch_size for point in (result.recommended, result.current) if point is not None]
    keeps_today = len(sizes) == 2 and sizes[0] == sizes[1]
    if has_paste and not keeps_today:
        return "copy"
    if result.boundary.reason is Reason.TIME_BUDGET and run.is_startable:  # the same once more would end the same
        return "more_time"
    if not (result.compares_speeds or result.is_emulated) and result.largest is not None:
        return "compare" if run.is_startable else "compare_elsewhere"
    if result.lacks_answer and may_time_again(run, result):
        return "time"
    if again_command:
        return "time_elsewhere"
    if can_change and (keeps_today or (result.largest is None or is_today_refused(result))):
        return "change"
    return "again" if run.is_startable else "details"


def may_time_again(run: Run, result: Measured) -> bool:
    was_searched = result.largest is not None and (result.recommended is not None or result.lacks_answer)
    if not was_searched or result.speed is None or run.is_reported:
        return False
    return result.training is None or (run.is_startable and result.lacks_answer and was_compared(result))


def _result_context(run: Run, result: Measured, assumed: Assumptions) -> dict[str, Any]:
    shown, (need, suggestions) = figures(result, assumed.savings), ways_to_fit(result)
    gain = nothing_to_gain(result)
    evidence = _evidence(run, result, assumed.savings)
    setting = None if gain else result_summary.paste(result)
    can_change = evidence["change_start"] is not None
    again = _again_command(run, result)
    primary = primary_action(run, result, has_paste=setting is not None, can_change=can_change, again_command=again)
    throughputs = () if result.training is None else stated_throughputs(result, result.training)
    return {
        "result": result,
        "assumed": assumed,
        "headline": headline(result),
        "key_figures": key_figures(result, assumed.savings),
        "reach": "" if result.is_check else reach(result),
        "primary": primary,
        "again_command": again,
        "primary_repeats_all": primary == "again" or (primary == "time" and bool(result.training)),
        "may_time_again": may_time_again(run, result),
        "not_certified": why_not_certified(result),
        "unreadable": [part.replace("_", " ") for part in result.unreadable],
        "reserve": result_summary.describe_reserve(result),
        "timing": result_summary.describe_timing(result),
        "bars": memory_bars(
            waste=result.waste,
            current_batch_size=result.current_batch_size,
            current_is_refused=is_today_refused(result),
            recommended=result.recommended,
            with_reserve=result.largest_with_reserve,
        ),
        "figures": shown,
        "rounds_chart": None
        if result.is_speed_measurable
        else rounds_plot(result.speed_rounds, result.current_batch_size),
        "has_money": any(figure.assumption for figure in shown),
        "nothing_to_gain": gain,
        "need": need,
        "suggestions": suggestions,
        "paste": setting,
        "training_rows": result_summary.training_rows(result),
        "ranks": rank_peaks(result.spec, result.training.rank_peaks_bytes) if result.training else [],
        "loader_limit": result_summary.loader_limit(result),
        "paste_note": result_summary.paste_note(result),
        "throughputs": throughputs,
        "has_tokens": any(each.tokens_per_second for each in throughputs),
        "has_waiting": any(each.waiting_fraction is not None for each in throughputs),
        **evidence,
    }


def _again_command(run: Run, result: Measured) -> str:
    if result.training is None or run.is_startable or not (result.lacks_answer and was_compared(result)):
        return ""
    return again_command(run.spec, f"{settings.PUBLIC_URL}/" if settings.PUBLIC_URL else "")


def _evidence(run: Run, result: Measured, money: Savings) -> dict[str, Any]:
    certificate = certificate_lines(result)
    if result.estimate is not None:
        certificate.append(result_summary.estimate_evidence(result.estimate, result))
    carried = frozenset(map(probe_key, Probes.objects.of(run).filter(is_carried=True)))  # from an earlier attempt
    lines = probe_lines(result.probes, result.roles, carried)
    return {
        "charts": result_plots(result),
        "stack": memory_breakdown.stack(result),
        "stacks": memory_breakdown.stacks(result),
        "levels": memory_breakdown.levels(result),
        "filled": filled_memory(result.memory_breakdown),
        "peaks": memory_breakdown.peaks_without_parts(result),
        "certificate": certificate,
        "refusal": result.boundary.refusal,
        "change_start": change_start(run, is_refused=is_today_refused(result)),
        "faster": _faster(run, result, money),
        "beside": _beside_measurement(result),
        "timings": result_summary.timings(result),
        "environment": environment_rows(result),
        "is_accelerator": result.device.kind != "cpu",
        "has_speeds": any(line.samples_per_second is not None for line in lines),
        "has_steps": any(probe.step_seconds is not None for probe in result.probes),
        "probe_lines": [line for line in lines if not line.is_timed_without_figure],
        "timed_without_figure": len({line.probe.batch_size for line in lines if line.is_timed_without_figure}),
    }


def _faster(run: Run, result: Measured, money: Savings) -> dict[str, Any]:
    is_script = run.kind == RunKind.COMMAND
    raced = newest_race(run, OF_SCRIPTS if is_script else OF_SETTINGS)
    answer, may_race = "", run.is_startable and not run.is_reported and not is_script
    if raced is not None:
        with suppress(UnreadableError):  # its own page says so; this run can be read
            answer = presentation_of(raced).race(raced).headline_assuming(money)
    command = faster_command(run.spec) if is_script else ""
    return {"raced": raced, "answer": answer, "command": command, "may_race": may_race}


def _beside_measurement(result: Measured) -> dict[str, Any] | None:
    if (estimate := result.estimate) is None:
        return None
    how = [row for row in estimate_summary.how_rows(estimate) if row[0] not in ("Memory of the GPU", "Price")]
    of_the_answer = {None, *result.roles.values()}
    rows = compare_to_estimate(estimate, result)
    return {
        "rows": [row for row in rows if row.batch_size in of_the_answer],
        "more": [row for row in rows if row.batch_size not in of_the_answer],
        "how": how,
    }


def result_plots(result: Measured) -> list[Plot]:
    peak = memory_plot(result.probes, limit_bytes=result.limit_bytes, roles=result.roles, estimate=result.estimate)
    # where speeds could not be distinguished, their curve would show the load of other work
    speed = None
    if result.is_speed_measurable and result.training is None:  # only two sizes of a command are compared
        speed = speed_plot(result.probes, roles=result.roles, intervals=result.speed_intervals)
    return [plot for plot in (peak, speed) if plot is not None]


def environment_rows(result: Measured | Validated | AnyRace) -> list[tuple[str, str]]:
    device = result.device
    rows = [
        ("Device", f"{device.name} ({device.device})"),
        ("UUID", device.uuid),
        ("Driver", device.driver),
        ("Compute capability", device.compute_capability),
    ]
    rows += [(name.replace("_", " "), value) for name, value in result.environment.items() if name not in _INTERNAL]
    return [(name, str(value)) for name, value in rows if value not in (None, "", {}, [])]
