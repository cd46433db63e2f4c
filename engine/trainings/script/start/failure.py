"""Says of a start that failed what its user needs to find the cause: the output, and the command to run by hand."""

from __future__ import annotations

import os
import shlex

from ....errors import CommandUntunable
from ....report.script_output import MARK, NO_INPUT, NO_MOVE, NO_TRACKER, OTHER_TORCHVISION
from ....text.masking import masked
from ..notes.file_changes import Way
from ..notes.progress import Ended
from ..spec import VARIABLE, FunctionSpec, TuneSpec

# transformers hides the error of torchvision behind "Could not import module 'Trainer'"
_KNOWN_CAUSES = {
    "operator torchvision::nms does not exist": OTHER_TORCHVISION,
    "EOFError: EOF when reading a line": NO_INPUT,
    ".use_artifact(": NO_TRACKER,
}
_CAUSES_OF_LAYERS = {"Invalid cross-device link": NO_MOVE, "Value too large for defined data type": NO_MOVE}
"""What a user namespace does not allow in layers, and any other failure of those may be the script's own."""


def describe_failure(spec: TuneSpec | FunctionSpec, batch_size: int, ended: Ended) -> str:
    """Return what mends a start's error; behind a marker, as nobody is sent these unasked, its output and command."""
    lines = "".join(f"\n    {line}" for line in ended.last_output) or "none"
    log = f"\n  Its whole output: {ended.log}" if ended.log else ""
    return f"{_known_cause(ended)}{MARK}{lines}{log}\n  To run it by hand: {_command_by_hand(spec, batch_size)}"


def _known_cause(ended: Ended) -> str:
    if ended.log is None:
        return ""
    is_in_layers = ended.changes.protection is Way.LAYERS and os.geteuid() != 0
    causes = _KNOWN_CAUSES | (_CAUSES_OF_LAYERS if is_in_layers else {})
    try:
        with ended.log.open(errors="replace") as output:
            return next((causes[said] for line in output for said in causes if said in line), "")
    except FileNotFoundError:  # runs of the same account remove the oldest logs
        return ""


def with_its_cause(
    error: CommandUntunable, spec: TuneSpec | FunctionSpec, batch_size: int, ended: Ended
) -> CommandUntunable:
    """Return the error with the command and its output, where the start was not watched to its end: nothing failed."""
    if ended.log is None:
        return error
    text = str(error).partition(MARK)[0]
    return CommandUntunable(error.code, f"{text}{describe_failure(spec, batch_size, ended)}")


def _command_by_hand(spec: TuneSpec | FunctionSpec, batch_size: int) -> str:
    command = shlex.join(masked(spec.arguments_by_hand(batch_size, "OUT")))
    variable = f"{VARIABLE}={batch_size} " if spec.batch == "env" else ""
    config = spec.config if isinstance(spec, TuneSpec) else None
    with_number = "" if config is None else f"\n  with {config[1]}: {batch_size} in {config[0]}"
    return f"cd {shlex.quote(spec.directory or os.getcwd())} && {variable}{command}{with_number}"
