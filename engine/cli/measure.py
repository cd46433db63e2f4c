"""`python -m engine bert`: measure one model on one device, and print the result."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import EngineError, SpecError
from ..estimate.calibration import Calibration
from ..machine.device_lock import held_for_command, inherited_lock
from ..program import PROGRAM, with_program
from ..report.protocol import MEASUREMENT
from ..result import RunResult
from ..resume import EarlierAttempt
from ..runner import Emit, Hold, measure
from ..spec import RunSpec
from ..spec_checks import memory_limit_bytes
from ..validation import spec as validation
from ..worker.counted import counted
from .console import Console, check_answer, details, filled_lines, summary
from .exit_status import exit_status
from .options import add_config, add_output_options, add_search_options, add_settings, settings_given, spec_of
from .output import info_event, print_failure, print_json
from .refused import change_lines_after
from .reporting import Reported, Reporting, add_report_options

VALIDATED_MODELS = ("bert", "gpt2", "resnet")


def measure_command(arguments: list[str], *, description: str) -> int:
    """Measure or validate; returns the exit status."""
    started = time.monotonic()
    options = _parser(description).parse_args(arguments)
    try:
        if options.validate is not None or options.validate_backward is not None:
            return _validate(options)
        return _measure(options)
    except EngineError as error:
        return print_failure(error, started=started, events=options.events)


def _measure(options: argparse.Namespace) -> int:
    reporting = Reporting.of(options)
    spec = spec_of(_given(options), options.spec)
    if options.events or options.json:
        emit = print_json if options.events else Console(sys.stderr)
        spec = counted(spec, lambda text: emit(info_event(text)))
        earlier = _earlier(options)
        with reporting.run(MEASUREMENT, spec, emit) as run:
            result = _measured(spec, options, run, earlier=earlier)
            if options.json:
                print_json(result.to_dict())
    else:
        _refuse_tools_options(options)
        emit = Console(sys.stdout)
        spec = counted(spec, lambda text: emit(info_event(text)))
        with reporting.run(MEASUREMENT, spec, emit) as run:
            result = _measured(spec, options, run)
            _print_for_people(spec, result)
    return exit_status(result)


def _measured(
    spec: RunSpec, options: argparse.Namespace, run: Reported, earlier: EarlierAttempt | None = None
) -> RunResult:
    return measure(
        spec,
        run.emit,
        earlier=earlier,
        keep=lambda result: run.keep(exit_status(result), result),
        estimates=options.estimates,
        explains=options.explains,
        calibration=_calibration(options),
        hold=_hold(options, run.emit),
        started_as=run.started_as,
    )


def _print_for_people(spec: RunSpec, result: RunResult) -> None:
    if spec.check_batch_size is None:
        print(f"\n{details(result)}\n\n{summary(result)}")
    else:
        filled = filled_lines(result.memory_breakdown)
        print("\n".join([check_answer(result), *filled, *change_lines_after(result)]))


def _hold(options: argparse.Namespace, emit: Emit) -> Hold | None:
    """Take the lock of the device for this command; None where a portal's worker holds it for this process."""
    if inherited_lock() is not None:
        return None
    wait_seconds = math.inf if options.wait_for_device else 0.0
    return partial(
        held_for_command, wait_seconds=wait_seconds, on_wait=lambda busy: emit(info_event(f"waiting: {busy}"))
    )


def _refuse_tools_options(options: argparse.Namespace) -> None:
    for name in ("resume", "result_file"):
        if getattr(options, name) is not None:
            raise SpecError(name, "requires --events or --json")


def _earlier(options: argparse.Namespace) -> EarlierAttempt | None:
    """Read an earlier attempt from standard input, if --resume is given."""
    if options.resume is None:
        return None
    if options.resume != "-":
        raise SpecError("resume", "must be -: the probes are read from standard input")
    try:
        return EarlierAttempt.from_dict(json.load(sys.stdin))
    except (ValueError, RecursionError) as exc:  # no JSON, or no UTF-8
        raise SpecError("resume", f"is not valid JSON: {exc}") from exc


def _calibration(options: argparse.Namespace) -> Calibration | None:
    return None if options.calibration is None else Calibration.read(options.calibration)


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings named on the command line."""
    if options.device_name and options.device and options.device_name != options.device:
        raise SpecError("device", f"given twice: {options.device_name} and {options.device}")
    given = settings_given(options)
    if options.device_name:
        given["device"] = options.device_name
    if options.memory_limit is not None:
        given["memory_limit_bytes"] = memory_limit_bytes(options.memory_limit)
    return given


def _validate(options: argparse.Namespace) -> int:
    from . import validate

    is_backward = options.validate_backward is not None
    if options.json or options.events or options.spec:
        raise SpecError("validate", f"prints rows; `{PROGRAM} validate` takes --json, --events and --spec")
    _refuse_tools_options(options)
    model = (options.validate_backward if is_backward else options.validate) or options.model
    given = {name: value for name, value in _given(options).items() if name in validation.SETTINGS}
    check = validation.BACKWARD if is_backward else validation.COMPILE
    models = (given["model"],) if "config" in given else (model,) if model else VALIDATED_MODELS
    specs = [validation.ValidationSpec(**{**given, "model": m}, check=check) for m in models]
    return validate.validate_each(specs, options)


def _parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=with_program(description), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--version", action="version", version=f"MemoryMark {__version__}")
    add("model", nargs="?", help=f"one of `{PROGRAM} models`: bert, gpt2, resnet, ...")
    add("device_name", nargs="?", metavar="device", help="auto, cuda, cuda:N, xpu, mps or cpu")
    add("--device", help="the same, as an option")
    add_settings(parser)
    add_config(parser)
    add_search_options(parser)
    add("--fits", type=int, metavar="N", dest="check_batch_size", help="only run N: exit 0 if it trains, 3 if not")
    add("--spec", metavar="JSON", help="the whole RunSpec as JSON instead of options")
    add_output_options(parser)
    add("--resume", metavar="-", help="read an interrupted attempt's probes from standard input")
    add("--no-estimate", action="store_false", dest="estimates", help="search without an estimate to start from")
    add("--no-breakdown", action="store_false", dest="explains", help="do not find out what filled the memory")
    add("--calibration", type=Path, metavar="FILE", help="output of `calibrate --json`, for the estimate")
    add_report_options(parser)
    checks = parser.add_mutually_exclusive_group()
    checks.add_argument("--validate", nargs="?", const="", metavar="MODEL")
    checks.add_argument("--validate-backward", nargs="?", const="", metavar="MODEL")
    return parser
