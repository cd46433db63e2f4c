"""Says of a start that failed what its user needs to find the cause: the command, the output, and whose fault it is.

The same command is started once more without the watch. Where it fails as well, the cause is in the script: a missing
package, a wrong argument. Where it goes on, the watch may be the cause.
"""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path

from ..errors import CommandUntunable, WorkloadFailed
from ..machine.scratch import scratch_folder
from ..report.script_output import (
    FAILS_UNWATCHED,
    MARK,
    NO_INPUT,
    NO_TRACKER,
    OTHER_TORCHVISION,
    RUNS_UNWATCHED,
)
from ..results.result import Probe
from ..text.masking import masked
from ..text.own_words import describe_error
from .evidence import Ended
from .spec import VARIABLE, FunctionSpec, TuneSpec
from .start.launch import BeginUnwatched, Place

LONGER, AT_LEAST_SECONDS, LOOK_SECONDS = 2.0, 5.0, 0.05
# transformers hides the error of torchvision behind "Could not import module 'Trainer'"
_KNOWN_CAUSES = {
    "operator torchvision::nms does not exist": OTHER_TORCHVISION,
    "EOFError: EOF when reading a line": NO_INPUT,
    ".use_artifact(": NO_TRACKER,
}


def describe_failure(
    spec: TuneSpec | FunctionSpec, batch_size: int, ended: Ended, begin: BeginUnwatched | None, seconds_left: float
) -> str:
    """Return what is set behind the error of a start: who failed, the command, where its output is, its last lines.

    All but the first follows the marker of a script's output, so that none of it is sent to a portal unasked.
    """
    seconds = LONGER * ended.wall_seconds + AT_LEAST_SECONDS
    # a start that timed out, or less time than the watched one had, would not tell whose fault it is
    tells = begin is not None and ended.timed_out_after_seconds is None and seconds <= seconds_left
    blame = _describe_unwatched(begin, batch_size, seconds) if begin is not None and tells else ""
    lines = "".join(f"\n    {line}" for line in ended.last_output) or "none"
    log = f"\n  Its whole output: {ended.log}" if ended.log else ""
    return (
        f"{_known_cause(ended.log)}{blame}{MARK}{lines}{log}\n  To run it by hand: {_command_by_hand(spec, batch_size)}"
    )


def _known_cause(log: Path | None) -> str:
    """Return what mends a failure that people take for one of their script, by a line anywhere in the output."""
    if log is None:
        return ""
    try:
        with log.open(errors="replace") as output:
            return next((_KNOWN_CAUSES[said] for line in output for said in _KNOWN_CAUSES if said in line), "")
    except FileNotFoundError:  # runs of the same account remove the oldest logs
        return ""


def with_its_cause(
    error: CommandUntunable, spec: TuneSpec | FunctionSpec, batch_size: int, ended: Ended
) -> CommandUntunable:
    """Return the error with the command and its output, where the start was not watched to its end: nothing failed."""
    if ended.log is None:
        return error
    text = str(error).partition(MARK)[0]
    return CommandUntunable(error.code, f"{text}{describe_failure(spec, batch_size, ended, None, 0.0)}")


def _command_by_hand(spec: TuneSpec | FunctionSpec, batch_size: int) -> str:
    command = shlex.join(masked(spec.arguments_by_hand(batch_size, "OUT")))
    variable = f"{VARIABLE}={batch_size} " if spec.batch == "env" else ""
    config = spec.config if isinstance(spec, TuneSpec) else None
    with_number = "" if config is None else f"\n  with {config[1]}: {batch_size} in {config[0]}"
    return f"cd {shlex.quote(spec.directory or os.getcwd())} && {variable}{command}{with_number}"


def _describe_unwatched(begin: BeginUnwatched, batch_size: int, seconds: float) -> str:
    """Start the command without the watch, and say whether it fails then, too."""
    with scratch_folder() as folder:
        place = Place(Path(folder) / "notes", Path(folder) / "out", Path(folder) / "log")
        place.out.mkdir()
        place.log.touch()
        running, until = begin(batch_size, place), time.monotonic() + seconds
        try:
            while not running.has_ended() and time.monotonic() < until:
                time.sleep(LOOK_SECONDS)
        finally:
            status = running.end()
    return FAILS_UNWATCHED if status else RUNS_UNWATCHED


def no_step(probe: Probe) -> WorkloadFailed:
    """Make the error of a training that came to no optimizer step even at its smallest size."""
    said = describe_error(probe.error_type, probe.error_message)
    return WorkloadFailed(f"the training came to no optimizer step: {said}")
