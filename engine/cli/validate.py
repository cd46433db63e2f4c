"""`python -m engine validate`: is the backward pass in the figures, and does torch.compile train the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from ..describe.time_left.phase_facts import event_line
from ..estimate.tracing.hidden_devices import HIDDEN
from ..facts.run_kind import RunKind
from ..program import PROGRAM
from ..questions.validation.spec import SETTINGS, ValidationSpec
from ..questions.validation.verdict import ValidationResult, Verdict
from ..trainings.catalogue.counted import counted
from .command import Command
from .exit_status import exit_status_of_validation
from .options import device_hold, settings_given, spec_given
from .printing.console import receiver
from .printing.terminal import say_lines, width_of, wrapped
from .reporting import Reporting, run_params

HELP = f"""Validate what the figures rest on: the backward pass, or torch.compile.

\b
{PROGRAM} validate bert --precision bf16   memory and gradients
{PROGRAM} validate bert --check compile    eager against torch.compile
"""
_MARKS = {Verdict.PASSED: "PASS", Verdict.WARNING: "WARN", Verdict.FAILED: "FAIL", Verdict.NOT_CHECKED: "OPEN"}


def _validate(options: SimpleNamespace) -> int:
    given = spec_given(settings_given(options, SETTINGS), options.spec)
    spec, reporting = _prepared(ValidationSpec.from_dict(given)), Reporting.of(options)
    console = receiver(options, spec.to_dict(), stream=sys.stderr, line_of=_line_of)
    with console as emit, reporting.run(RunKind.VALIDATION, spec, emit) as run:
        from ..measurement.device import facts_of  # imports torch
        from ..questions.validation.measure import validate

        hold = device_hold(lambda event: run.emit({**event, "is_waiting": True}), waits=options.wait_for_device)
        held = nullcontext() if hold is None else hold(facts_of(spec.device))
        with run.shown(options, _say, _status_of) as keep, held:
            result = validate(spec, run.emit, keep=keep, started_as=run.started_as)
    return _status_of(result)


def _status_of(result: ValidationResult) -> int:
    return exit_status_of_validation(result.verdict)


def _say(result: ValidationResult) -> None:
    say_lines(wrapped(lines_of(result), width_of(sys.stdout)))


def _prepared(spec: ValidationSpec) -> ValidationSpec:
    """Set what torch reads when it is imported, and count the parameters of a config."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler would write its own starts and stops to the log
    if spec.device == "cpu":
        os.environ.update(HIDDEN)  # autograd opens a context on every card it finds, and others may be measuring there
    if spec.config is not None:
        spec = replace(spec, config_parameters=counted(spec.run_spec()).config_parameters)
    return spec


def lines_of(result: ValidationResult) -> list[str]:
    """Write the verdict, and a line for each check: ``PASS  the gradients of ... (they differ by 0.4 %)``."""
    spec = result.spec
    heading = f"{spec.model} on {result.device.name}, {spec.precision}, batch {spec.batch_size}"
    rows = [f"  {_MARKS[check.verdict]}  {check.claim} ({check.finding})" for check in result.checks]
    return [heading, *rows, result.text]


def _line_of(event: Mapping[str, Any]) -> str | None:
    is_begun = event["event"] == "phase" and event["phase"] != "finished"
    is_shown = is_begun or bool(event.get("is_waiting"))
    return event_line(event) if is_shown else None


COMMAND = Command(
    "validate",
    _validate,
    params=run_params(ValidationSpec),
    help=HELP,
    epilog="Exit status: 0 passed, also with warnings; 1 failed; others as `measure`.",
)
