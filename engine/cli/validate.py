"""`python -m engine validate bert`: does the backward pass stand in the figures, does torch.compile train the same.

    python -m engine validate bert [cuda|mps|cpu] [--precision bf16]   memory and gradients of the backward pass
    python -m engine validate bert --check compile                     eager against torch.compile
    python -m engine validate --spec JSON --events                     JSON lines (what the portal reads)

Exit status: 0 passed, also with warnings; 1 failed; the others as a measurement has them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from ..errors import EngineError, SpecError
from ..estimate.hidden_devices import HIDDEN
from ..machine.device_lock import held_for_command, inherited_lock
from ..program import PROGRAM
from ..progress import PHASE_LABELS
from ..report.protocol import VALIDATION
from ..spec_checks import memory_limit_bytes
from ..validation.spec import CHECKS, ValidationSpec
from ..validation.verdict import ValidationResult, Verdict
from ..worker.counted import counted
from .console import RULE
from .options import add_config, add_output_options, add_settings, command_parser, settings_given
from .output import info_event, print_failure, print_json
from .reporting import Reported, Reporting, add_report_options

_MARKS = {Verdict.PASSED: "PASS", Verdict.WARNING: "WARN", Verdict.FAILED: "FAIL", Verdict.NOT_CHECKED: "OPEN"}


def main(arguments: list[str]) -> int:
    """Validate one model; the exit status."""
    started = time.monotonic()
    options = _parser().parse_args(arguments)
    try:
        return _validate(options)
    except EngineError as error:
        return print_failure(error, started=started, events=options.events)


def _validate(options: argparse.Namespace) -> int:
    spec, reporting = _prepared(_spec(options)), Reporting.of(options)
    with reporting.run(VALIDATION, spec, print_json if options.events else _say) as run:
        result = validated(spec, run, wait_seconds=math.inf if options.wait_for_device else 0.0)
        if options.events:
            run.emit({"event": "result", "seconds": round(result.total_seconds, 3), "result": result.to_dict()})
        elif options.json:
            print_json(result.to_dict())
        else:
            print("\n".join(lines_of(result)))
    return exit_status([result])


def validate_each(specs: Sequence[ValidationSpec], options: argparse.Namespace) -> int:
    """Validate several models, and print a block for each; the exit status."""
    results, reporting = [], Reporting.of(options)
    for spec in map(_prepared, specs):
        with reporting.run(VALIDATION, spec, _say) as run:
            results.append(validated(spec, run))
        print("\n".join([*lines_of(results[-1]), RULE]))
    return exit_status(results)


def validated(spec: ValidationSpec, run: Reported, wait_seconds: float = 0.0) -> ValidationResult:
    """Run the validation while the device is held for this command, unless a portal's worker holds it already."""
    from ..measurement.device import facts_of  # imports torch
    from ..validation.measure import validate

    def on_wait(busy: str) -> None:
        run.emit({**info_event(f"waiting: {busy}"), "is_waiting": True})

    is_held = inherited_lock() is not None
    hold = partial(held_for_command, wait_seconds=wait_seconds, on_wait=on_wait)
    with nullcontext() if is_held else hold(facts_of(spec.device)):
        result = validate(spec, run.emit, run.started_as)
    run.keep(exit_status([result]), result)
    return result


def _prepared(spec: ValidationSpec) -> ValidationSpec:
    """Hide the cards from a validation on the CPU, and count the parameters of a config."""
    if spec.device == "cpu":
        os.environ.update(HIDDEN)  # autograd makes a context on every card it finds, and others may be measuring there
    if spec.config is not None:
        spec = replace(spec, config_parameters=counted(spec.run_spec()).config_parameters)
    return spec


def exit_status(results: Sequence[ValidationResult]) -> int:
    return int(any(result.verdict is Verdict.FAILED for result in results))


def lines_of(result: ValidationResult) -> list[str]:
    """Write the verdict, and a line for each check: ``PASS  the gradients of ... (they differ by 0.4 %)``."""
    spec = result.spec
    heading = f"{spec.model} on {result.device.name}, {spec.precision}, batch {spec.batch_size}"
    rows = [f"  {_MARKS[check.verdict]}  {check.claim} ({check.finding})" for check in result.checks]
    return [heading, *rows, result.text]


def _say(event: dict[str, Any]) -> None:
    """Tell a person what goes on; the checks themselves are printed at the end."""
    if event["event"] == "phase" and event["phase"] != "finished":
        sys.stderr.write(f"{PHASE_LABELS[event['phase']]}\n")
    elif event["event"] == "log" and event.get("is_waiting"):
        sys.stderr.write(f"{event['message']}\n")


def _spec(options: argparse.Namespace) -> ValidationSpec:
    own = {name: getattr(options, name) for name in ("check", "batch_size", "gradient_tolerance")}
    given = settings_given(options) | {name: value for name, value in own.items() if value is not None}
    if options.device_name:
        given["device"] = options.device_name
    if options.memory_limit is not None:
        given["memory_limit_bytes"] = memory_limit_bytes(options.memory_limit)
    if options.spec is None:
        return ValidationSpec.from_dict(given)
    if given:
        raise SpecError("spec", f"replaces all settings; leave out {', '.join(given)}")
    try:
        return ValidationSpec.from_dict(json.loads(options.spec))
    except (json.JSONDecodeError, RecursionError) as exc:
        raise SpecError("spec", f"is not valid JSON: {exc}") from exc


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("validate", __doc__)
    add = parser.add_argument
    add("model", nargs="?", help=f"one of `{PROGRAM} models`: bert, gpt2, resnet, ...")
    add("device_name", nargs="?", metavar="device", help="auto, cuda, cuda:N, xpu, mps or cpu")
    add("--check", help=" ".join(CHECKS))
    add("--batch-size", type=int, metavar="N", help="samples of each step that is compared (8)")
    add("--gradient-tolerance", type=float, metavar="SHARE", help="how far gradients may differ: 0.02 is 2 %%")
    add_settings(parser)
    add_config(parser)
    add("--memory-limit", metavar="SIZE", help="pretend the device has this much: 24GiB, 512MiB")
    add("--time-budget", type=float, metavar="SECONDS", dest="time_budget_seconds")
    add("--spec", metavar="JSON", help="the whole ValidationSpec as JSON instead of options")
    add_output_options(parser)
    add_report_options(parser)
    return parser
