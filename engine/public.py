"""The public Python API, `import memorymark` or `import engine.public`. All else may change with any version."""

from __future__ import annotations

import os
import sys
from typing import Any, TypeVar

from . import __version__
from .cli.exit_status import exit_status
from .cli.notebook import load_ipython_extension
from .cli.printing.console import Console
from .cli.printing.output import info_event
from .cli.reporting import Reporting
from .errors import CommandUntunable, DeviceBusy, DeviceUnavailable, EngineError, SpecError, WorkloadFailed
from .facts.result import Boundary, Point, Probe, RunResult
from .facts.run_kind import RunKind
from .machine.execution import Emit
from .questions.size import measure as measure_reporting
from .report.active_run import write_to_active_runs
from .report.address import token_put_back
from .settings.spec import DEFAULTS, RunSpec
from .settings.spec_checks import given_fields
from .text.units import format_bytes, parse_bytes
from .trainings.script.function import tunable, tune_function
from .trainings.script.result import TuneResult
from .trainings.script.spec import FunctionSpec
from .trainings.script.start.fork import MakeStep

__all__ = [
    "Boundary",
    "CommandUntunable",
    "DeviceBusy",
    "DeviceUnavailable",
    "EngineError",
    "Point",
    "Probe",
    "RunResult",
    "RunSpec",
    "SpecError",
    "TuneResult",
    "WorkloadFailed",
    "__version__",
    "format_bytes",
    "load_ipython_extension",
    "measure",
    "parse_bytes",
    "steps",
    "tune",
]

Loader = TypeVar("Loader")


def steps(loader: Loader) -> Loader:
    """Return the loader; where `tune --batch steps` runs the script, one that yields the batch size to be tried."""
    hook = sys.modules.get("memorymark_batch")  # loaded only where `tune` runs the script
    tried: Loader = loader if hook is None else hook.loader_to_try(loader)
    return tried


def measure(spec: RunSpec, emit: Emit | None = None, *, log_to_active_run: bool = True, **others: Any) -> RunResult:
    """Measure a catalogue model; `others` are of `questions.size.measure`. Without `emit` events are printed as lines.

    `log_to_active_run`: the W&B or MLflow run that is active in this process gets the result's figures.
    """
    emit = Console(sys.stdout, spec.to_dict()) if emit is None else emit
    result = measure_reporting(spec, emit, **others)
    if log_to_active_run:
        _log(result, emit)
    return result


def tune(
    make_step: MakeStep | str,
    *,
    device: str = "auto",
    memory_limit: str | int | None = None,
    current_batch_size: int = DEFAULTS["current_batch_size"],
    max_batch_size: int = DEFAULTS["max_batch_size"],
    time_budget_seconds: float = DEFAULTS["time_budget_seconds"],
    soak_steps: int | None = None,
    reserve_fraction: float = DEFAULTS["reserve_fraction"],
    reserve_bytes: str | int | None = None,
    compare_speed: bool = True,
    warm: bool = False,
    report_to: str | None = None,
    report_output: bool = False,
    log_to_active_run: bool = True,
    emit: Emit | None = None,
) -> TuneResult:
    """Find the exact largest batch size of a training that a function makes.

    `make_step(batch_size)` makes model, optimizer and data, and returns what runs one optimizer step. It may be given
    as text, `package.module:function`. `warm` imports the module of the function once instead of at each start; it must
    use no card while it is imported. `compare_speed` times today's size and up to three others in turns; without it no
    size is recommended. `emit` is called with each event; left out, they are printed as lines.

    `report_to` is the address of a portal that shows the run while it goes on; left out, MEMORYMARK_REPORT_TO names it,
    as for the commands, and "" reports nowhere. The token is read from MEMORYMARK_TOKEN. The first event says so.
    What the function printed before an error, and the error's message, are sent with `report_output` alone.
    `log_to_active_run`: the W&B or MLflow run that is active in this process gets the result's figures.

    Raises EngineError: SpecError for a setting that is not allowed, CommandUntunable where nothing could be proven.
    """
    limits = {
        "device": device,
        "memory_limit_bytes": memory_limit,
        "current_batch_size": current_batch_size,
        "max_batch_size": max_batch_size,
        "time_budget_seconds": time_budget_seconds,
        "soak_steps": soak_steps,
        "reserve_fraction": reserve_fraction,
        "reserve_bytes": reserve_bytes,
        "compare_speed": compare_speed,
    }
    emit = Console(sys.stdout) if emit is None else emit
    spec, begin = tunable(make_step, given_fields(FunctionSpec, limits), is_warm=warm)
    with token_put_back(os.environ):
        reporting = Reporting(report_to, sends_output=report_output)
        if reporting.notice:
            emit(info_event(reporting.notice))
        with reporting.run(RunKind.COMMAND, spec, emit) as run:
            tuned = tune_function(
                spec,
                begin,
                run.emit,
                keep=lambda result: run.keep(exit_status(result.result), result),
                started_as=run.started_as,
            )
    if log_to_active_run:
        _log(tuned.result, emit)
    return tuned


def _log(result: RunResult, emit: Emit) -> None:
    for written in write_to_active_runs(result):
        emit(info_event(written))
