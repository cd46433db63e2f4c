"""The pages of a search for the batch size, of a model or of somebody's training: its result, in the page's order."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.http import QueryDict
from django.urls import reverse

from analysis.charts.curves import memory_plot, rounds_plot, speed_plot
from analysis.charts.plots import Plot
from analysis.http.query_string import StrictQueryForm, WholeNumberField, without_empty
from analysis.models import Measurement as Probes
from analysis.models import Run, RunKind
from analysis.pages.kinds.page import KindPages, Page
from analysis.pages.what_to_change.context import change_start
from analysis.presentation.kinds import presentation_of
from analysis.presentation.probe_rows import probe_key, probe_lines
from analysis.presentation.result_summary import headline
from analysis.presentation.unreadable import UnreadableError, read_stored
from analysis.runs.earlier.races import OF_SCRIPTS, OF_SETTINGS, newest_race
from engine.describe.boundary import is_today_refused
from engine.describe.does_not_fit import script_changes
from engine.describe.key_figures import nothing_to_gain
from engine.describe.speed import was_compared
from engine.facts.result import Reason, Savings
from engine.facts.savings import savings_assuming
from engine.questions.documents.measured import Measured
from engine.questions.documents.words import paste
from engine.settings.spec import RANGES
from engine.trainings.script.faster.command import again_command, faster_command
from engine.trainings.script.ranked_spec import request_in

_PRICE, _HOURS, _RUNS = (RANGES[name] for name in ("price_per_hour_usd", "hours_per_run", "runs_per_year"))


class AssumptionsForm(StrictQueryForm):
    """What money is computed with, as parameters of an address: `?price=2.5&hours=8&runs=40`; else the run's own."""

    price = forms.FloatField(label="Price per hour, US$", min_value=_PRICE[0], max_value=_PRICE[1])
    hours = forms.FloatField(label="Hours per run today", min_value=_HOURS[0], max_value=_HOURS[1])
    runs = WholeNumberField(label="Runs per year", min_value=int(_RUNS[0]), max_value=int(_RUNS[1]))

    def __init__(self, query: QueryDict, result: Measured) -> None:
        self.result, own = result, result.savings
        price, hours = f"{own.price_per_hour_usd:.10g}", f"{own.hours_per_run:.10g}"
        super().__init__(without_empty(query), initial={"price": price, "hours": hours, "runs": str(own.runs_per_year)})

    @cached_property
    def savings(self) -> Savings:
        """The savings by these assumptions; an invalid one changes nothing."""
        result = self.result
        if self.problems or not self.given:
            return result.savings
        return savings_assuming(
            result.speedup,
            speedup_low=result.speedup_low,
            speedup_high=result.speedup_high,
            price_per_hour_usd=self.cleaned_data["price"],
            hours_per_run=self.cleaned_data["hours"],
            runs_per_year=self.cleaned_data["runs"],
        )

    @property
    def is_changed(self) -> bool:
        return self.savings != self.result.savings


class Measurement(KindPages):
    form_label = "Measure on a device here"

    def result_page(self, run: Run, query: QueryDict, user: User | None = None) -> Page:
        result, assumed = read_stored(Measured.from_dict, run.result), query.copy()
        is_whole = assumed.pop("print", None) == ["all"]
        context = _result_context(run, result, AssumptionsForm(assumed, result))
        return "analysis/run/result.html", context | {"paper": "" if is_whole else " no-print"}


class Command(Measurement):
    """A measurement's page; ranks of a catalogue model start from its form, registered commands from their own page."""

    views = "analysis.pages.commands.views"
    form_label = ""

    def result_page(self, run: Run, query: QueryDict, user: User | None = None) -> Page:
        """Return a measurement's page, with changes to try instead of estimated ones, which are not possible here."""
        template, context = super().result_page(run, query, user)
        if run.spec.get("catalogue"):  # it has settings to change, not a script's
            return template, context
        return template, context | {"script_changes": script_changes(context["result"].probes)}

    def form_settings(self, run: Run) -> Mapping[str, Any]:
        return request_in(run.spec) if run.spec.get("catalogue") else run.spec

    def change_address(self, run: Run) -> str:
        if run.spec.get("catalogue"):
            return super().change_address(run)
        return f"{reverse('analysis:commands')}?from={run.pk}#command-{run.model}"


def _result_context(run: Run, result: Measured, assumed: AssumptionsForm) -> dict[str, Any]:
    """Return what depends on more than the result; of the result alone the filters in `templatetags/answer.py` tell."""
    shown, gain = _probes(run, result), nothing_to_gain(result)
    change = change_start(run, is_refused=is_today_refused(result))
    setting = None if gain else paste(result)
    return {
        **shown,
        "result": result,
        "assumed": assumed,
        "headline": headline(result),
        "nothing_to_gain": gain,
        "paste": setting,
        "change_start": change,
        "faster": _faster(run, assumed.savings),
        **_next_step(run, result, has_paste=setting is not None, can_change=change is not None),
        "charts": result_plots(result),
        "rounds_chart": None
        if result.is_speed_measurable
        else rounds_plot(result.speed_rounds, result.current_batch_size),
    }


def _next_step(run: Run, result: Measured, *, has_paste: bool, can_change: bool) -> dict[str, Any]:
    """Return the one next step after a result: its name in the template `primary.html`, and its context."""
    is_own, is_open = result.training is not None, result.lacks_answer and was_compared(result)
    was_searched = result.largest is not None and (result.recommended is not None or result.lacks_answer)
    may_time_again = was_searched and result.speed is not None and not run.is_reported
    may_time_again = may_time_again and (not is_own or (run.is_startable and is_open))
    elsewhere = f"{settings.PUBLIC_URL}/" if settings.PUBLIC_URL else ""
    command = again_command(run.spec, elsewhere) if is_own and is_open and not run.is_startable else ""
    sizes = [point.batch_size for point in (result.recommended, result.current) if point is not None]
    keeps_today = len(sizes) == 2 and sizes[0] == sizes[1]
    steps = {
        "copy": has_paste and not keeps_today,
        # the same once more would end the same
        "more_time": result.boundary.reason is Reason.TIME_BUDGET and run.is_startable,
        "compare": not (result.compares_speeds or result.is_emulated) and result.largest is not None,
        "time": result.lacks_answer and may_time_again,
        "time_elsewhere": bool(command),
        "change": can_change and (keeps_today or result.largest is None or is_today_refused(result)),
        "again": run.is_startable and not run.is_reported,  # its device may be none of this portal's
        "details": True,
    }
    primary = next(name for name, is_offered in steps.items() if is_offered)
    primary = "compare_elsewhere" if primary == "compare" and not run.is_startable else primary
    return {"primary": primary, "may_time_again": may_time_again, "again_command": command}


def _probes(run: Run, result: Measured) -> dict[str, Any]:
    carried = frozenset(map(probe_key, Probes.objects.of(run).filter(is_carried=True)))  # from an earlier attempt
    lines = probe_lines(result.probes, result.roles, carried)
    return {
        "probe_lines": [line for line in lines if not line.is_timed_without_figure],
        "timed_without_figure": len({line.probe.batch_size for line in lines if line.is_timed_without_figure}),
    }


def _faster(run: Run, money: Savings) -> dict[str, Any]:
    is_script = run.kind == RunKind.COMMAND
    raced = newest_race(run, OF_SCRIPTS if is_script else OF_SETTINGS)
    answer, may_race = "", run.is_startable and not run.is_reported and not is_script
    if raced is not None:
        with suppress(UnreadableError):  # its own page says so; this run can be read
            answer = presentation_of(raced).race(raced).headline_assuming(money)
    command = faster_command(run.spec) if is_script else ""
    return {"raced": raced, "answer": answer, "command": command, "may_race": may_race}


def result_plots(result: Measured) -> list[Plot]:
    peak = memory_plot(result.probes, limit_bytes=result.limit_bytes, roles=result.roles, estimate=result.estimate)
    # where speeds could not be distinguished, their curve would show the load of other work
    speed = None
    if result.is_speed_measurable and result.training is None:  # only two sizes of a command are compared
        speed = speed_plot(result.probes, roles=result.roles, intervals=result.speed_intervals)
    return [plot for plot in (peak, speed) if plot is not None]
