"""`python -m engine watch -- python train.py`: run a training as it is, and say what it used and why it ended."""

from __future__ import annotations

import json
import os
import signal
import sys
from types import SimpleNamespace

from ..facts.provenance.read import run_facts
from ..facts.run_kind import RunKind
from ..program import PROGRAM
from ..recording.record import record
from ..recording.report import document
from ..recording.spec import WatchSpec
from ..recording.words import lines
from ..trainings.script.devices import script_facts
from .command import OUTPUT, TRAIN, WHERE, Command, argument, flag, option
from .printing.terminal import say, width_of, wrapped
from .reporting import Reporting, report_options, report_output_option

HELP = f"""Run a training once, as it is and to its end, and say what it used.

Its output, files, exit status and signals are its own. The report goes to standard error: the peak, what was never
used, the wait for data, whether memory grows and at which step it will end, and why it died, if it did.

\b
{PROGRAM} watch -- python train.py
{PROGRAM} watch --device cuda:1 -- torchrun --nproc-per-node 2 train.py
"""


def _watch(options: SimpleNamespace) -> int:
    spec = WatchSpec(tuple(options.command), device=options.device or "auto")
    reporting = Reporting.of(options)
    started_as = {**run_facts(), **script_facts(spec.command)} if reporting.is_wanted else {}
    found = record(spec, started_as)
    if options.json:
        say(json.dumps(document(found.report, found.status)), sys.stderr)
    else:
        say("\n".join(["", *wrapped(lines(found.report, found.status), width_of(sys.stderr))]), sys.stderr)
    if reporting.is_wanted and found.process is None:
        say("not reported: no process was seen to train", sys.stderr)
    elif reporting.is_wanted:
        sent = found.to_send(with_output=options.report_output)
        reporting.send_ended(RunKind.WATCH, spec, started_as, found.status, sent)
    _end_as(found.status)
    return found.status


def _end_as(status: int) -> None:
    """End by the signal that ended the command, if one did: a shell or a scheduler sees the same."""
    if (number := -status) > 0:
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


COMMAND = Command(
    "watch",
    _watch,
    params=[
        argument("command", panel=TRAIN, help="The command, after --.", nargs=-1, metavar="COMMAND..."),
        option("--device", panel=WHERE, help="The device that the command sees: cuda:0, cpu. Default: as it is."),
        flag("--json", panel=OUTPUT, help="Print the report as one line of JSON, on standard error."),
        *report_options(),
        report_output_option(),
    ],
    help=HELP,
    epilog="Exit status: the command's.",
    options_metavar="[OPTIONS] --",
    context_settings={"allow_interspersed_args": False},
)
