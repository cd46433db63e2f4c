"""`python -m engine sync memorymark-runs/`: send to a portal what a folder holds and the portal does not have."""

from __future__ import annotations

import os
from types import SimpleNamespace

from ..errors import SpecError
from ..program import PROGRAM
from ..report.address import ADDRESS_VARIABLE, TOKEN_VARIABLE, address_of
from ..report.http import Portal
from ..report.sync import Sync, is_all_there
from ..text.printable import printable
from .command import OUTPUT, Command, argument, option
from .exit_status import EXIT_NOT_SYNCED
from .options import FILE
from .printing.terminal import say

HELP = f"""Send stored runs to a portal that does not have them yet.

Prints a line for each document: sent, known, refused, not reachable. It may be repeated: each document is stored
once. The token is read from MEMORYMARK_TOKEN.

\b
{PROGRAM} sync memorymark-runs/ --report-to https://lab/
"""


def _sync(options: SimpleNamespace) -> int:
    address = address_of(options.report_to, os.environ)
    if address is None:
        raise SpecError("report_to", f"name the portal with --report-to or {ADDRESS_VARIABLE}")
    if address.token is None:
        raise SpecError("token", f"{TOKEN_VARIABLE} is not set")
    for folder in options.folders:
        if not folder.exists():
            raise SpecError("folder", f"there is no {folder}")
    outcomes, said = [], set[str]()
    for outcome in Sync(Portal(address)).folders(options.folders):
        outcomes.append(outcome)
        text = printable(outcome.text)
        # one reason for ten files is said once; an address says where each of them is
        why = "for the same reason" if text in said and outcome.state not in ("sent", "known") else text
        said.add(text)
        say(f"{outcome.state}: {printable(outcome.path)}" + (f" ({why})" if text else ""))
    return 0 if is_all_there(outcomes) else EXIT_NOT_SYNCED


COMMAND = Command(
    "sync",
    _sync,
    params=[
        argument(
            "folders",
            nargs=-1,
            required=True,
            type=FILE,
            panel=OUTPUT,
            help="Where runs are stored, or a file",
        ),
        option("--report-to", panel=OUTPUT, metavar="URL", help="Portal", default_text="$MEMORYMARK_REPORT_TO"),
    ],
    help=HELP,
    epilog="Exit status: 0 all is there, 8 refused or not reachable, 2 bad arguments.",
)
