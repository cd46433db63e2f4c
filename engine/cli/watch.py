"""`python -m engine watch -- python train.py`: run a training as it is, and say what it used and why it ended."""

from __future__ import annotations

import json
import os
import signal
import sys
from types import SimpleNamespace

from ..errors import SpecError
from ..machine.host import available_bytes
from ..program import PROGRAM
from ..recording.record import record
from ..recording.report import document, lines, report_of
from ..settings.training_spec import check_device_name
from .command import OUTPUT, TRAIN, WHERE, Command, argument, flag, option
from .printing.terminal import say, width_of, wrapped

HELP = f"""Run a training once, as it is and to its end, and say what it used.

Its output, files, exit status and signals are its own. The report goes to standard error: the peak, what was never
used, the wait for data, whether memory grows and at which step it will end, and why it died, if it did.

\b
{PROGRAM} watch -- python train.py
{PROGRAM} watch --device cuda:1 -- torchrun --nproc-per-node 2 train.py
"""


def _watch(options: SimpleNamespace) -> int:
    command = list(options.command)
    if not command:
        raise SpecError("command", f"is missing: {PROGRAM} watch -- python train.py")
    device = options.device or "auto"
    check_device_name(device)
    recording = record(command, device)
    report = report_of(recording, available_bytes())
    if options.json:
        say(json.dumps(document(report, recording.status)), sys.stderr)
    else:
        say("\n".join(["", *wrapped(lines(report, recording.status), width_of(sys.stderr))]), sys.stderr)
    if (number := -recording.status) > 0:  # end as the command did: a shell or a scheduler sees the same signal
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return recording.status


COMMAND = Command(
    "watch",
    _watch,
    params=[
        argument("command", panel=TRAIN, help="The command, after --.", nargs=-1, metavar="COMMAND..."),
        option("--device", panel=WHERE, help="The device that the command sees: cuda:0, cpu. Default: as it is."),
        flag("--json", panel=OUTPUT, help="Print the report as one line of JSON, on standard error."),
    ],
    help=HELP,
    epilog="Exit status: the command's.",
    options_metavar="[OPTIONS] --",
    context_settings={"allow_interspersed_args": False},
)
