"""`python -m engine bert`: measure one model on one device, and print the result."""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace

import rich_click as click

from ..describe.commands import profile_lines
from ..errors import SpecError
from ..estimate.calibration import Calibration
from ..facts.result import RunResult
from ..facts.run_kind import RunKind
from ..program import PROGRAM
from ..search.resume import EarlierAttempt
from ..settings.rank_settings import RankStarts
from ..settings.spec import RunSpec
from ..trainings.catalogue.counted import counted
from ..trainings.script.ranked_spec import ranked_spec, spec_of_starts, with_ranks
from .command import ADVANCED, Command, flag, option
from .exit_status import EXIT_STATUSES, exit_status
from .options import FILE, device_hold, json_of, ranks_option, settings_given, spec_of, start_options
from .printing.console import receiver
from .printing.output import info_event
from .printing.result_text import say_check, say_result
from .reporting import Reporting, run_params
from .tune import measure_starts

HELP = f"""Find the largest and the fastest batch size of a model, by real training steps.

\b
{PROGRAM} measure bert                 on the best device
{PROGRAM} bert                         the same, in short
{PROGRAM} measure bert cuda:1 --json   the result as JSON
{PROGRAM} measure bert --fits 32       does batch 32 train?
"""


def _measure(options: SimpleNamespace) -> int:
    starts = _starts(options)
    if starts.emulate_ranks is not None and options.spec is not None:
        raise SpecError("emulate_ranks", "goes with single options, not with --spec")
    spec = spec_of(with_ranks(settings_given(options), starts), options.spec)
    measured = spec_of_starts(spec, starts)
    if not isinstance(measured, RunSpec):
        return _measure_ranks(spec, starts, options)
    spec = measured
    from ..questions.size import measure  # here, so that arguments are refused before it is loaded

    reporting = Reporting.of(options)
    if not (options.events or options.json):
        for name in ("resume", "result_file"):
            if getattr(options, name) is not None:
                raise SpecError(name, "requires --events or --json")
    with receiver(options, spec.to_dict()) as emit:
        spec = counted(spec, lambda text: emit(info_event(text)))
        earlier = _earlier(options)

        def show(result: RunResult) -> None:
            say = say_result if spec.check_batch_size is None else say_check
            say(result, profile_lines(spec.like))

        with reporting.run(RunKind.MEASUREMENT, spec, emit) as run, run.shown(options, show, exit_status) as keep:
            result = measure(
                spec,
                run.emit,
                earlier=earlier,
                keep=keep,
                estimates=not options.no_estimate,
                explains=not options.no_breakdown,
                calibration=None if options.calibration is None else Calibration.read(options.calibration),
                hold=device_hold(run.emit, waits=options.wait_for_device),
                started_as=run.started_as,
            )
    return exit_status(result)


def _starts(options: SimpleNamespace) -> RankStarts:
    rank = None if options.rank is None else ranks_option(options.rank)
    return RankStarts(options.emulate_ranks, rank, options.compare_speed)


def _measure_ranks(spec: RunSpec, starts: RankStarts, options: SimpleNamespace) -> int:
    """Train the model on several ranks, or emulate them, by starts as `tune` makes of a script."""
    for name in ("resume", "calibration"):
        if getattr(options, name) is not None:
            raise SpecError(name, f"is of a measurement on one device, not of {spec.ranks} ranks")
    with receiver(options, stream=sys.stderr) as emit:
        spec = counted(spec, lambda text: emit(info_event(text)))
    return measure_starts(ranked_spec(spec, starts), options)


def _earlier(options: SimpleNamespace) -> EarlierAttempt | None:
    if options.resume is None:
        return None
    if options.resume != "-":
        raise SpecError("resume", "must be -: the probes are read from standard input")
    return EarlierAttempt.from_dict(json_of("resume", sys.stdin))


_advanced = partial(option, panel=ADVANCED)


def _params() -> list[click.Parameter]:
    return [
        *run_params(RunSpec, *start_options(is_usual=False)),
        _advanced("--resume", metavar="-", help="Read the probes of an interrupted attempt from standard input"),
        flag("--no-estimate", panel=ADVANCED, help="Search without an estimate to start from"),
        flag("--no-breakdown", panel=ADVANCED, help="Do not find out what filled the memory"),
        _advanced("--calibration", type=FILE, metavar="FILE", help="Output of `calibrate --json`, for the estimate"),
    ]


COMMAND = Command(
    "measure",
    _measure,
    params=_params(),
    help=HELP,
    epilog=EXIT_STATUSES,
)
