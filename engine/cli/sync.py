"""`python -m engine sync memorymark-runs/`: send to a portal what a folder holds and the portal does not have.

    python -m engine sync FOLDER... --report-to https://memorymark.example.org/

Prints a line for each document: sent, known, refused, not reachable; files of others are skipped. It may be repeated:
each document is stored once. The token is read from MEMORYMARK_TOKEN, the address also from MEMORYMARK_REPORT_TO.

Exit status: 0 all is there, 8 something was refused or the portal could not be reached, 2 bad arguments.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ..errors import EngineError, SpecError
from ..report.address import ADDRESS_VARIABLE, TOKEN_VARIABLE, address_of
from ..report.http import Portal
from ..report.sync import Outcome, Sync, is_all_there
from .exit_status import EXIT_NOT_SYNCED
from .options import command_parser


def main(arguments: list[str]) -> int:
    """Send what the folders hold; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return _sync(options.folders, options.report_to)
    except EngineError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status


def _sync(folders: list[Path], report_to: str | None) -> int:
    address = address_of(report_to, os.environ)
    if address is None:
        raise SpecError("report_to", f"name the portal with --report-to or {ADDRESS_VARIABLE}")
    if address.token is None:
        raise SpecError("token", f"{TOKEN_VARIABLE} is not set")
    for folder in folders:
        if not folder.exists():
            raise SpecError("folder", f"there is no {folder}")
    outcomes = []
    for outcome in Sync(Portal(address)).folders(folders):
        outcomes.append(outcome)
        print(_line(outcome), flush=True)
    return 0 if is_all_there(outcomes) else EXIT_NOT_SYNCED


def _line(outcome: Outcome) -> str:
    """Write ``sent: memorymark-runs/3f5a....json (https://.../runs/812/)``."""
    return f"{outcome.state}: {outcome.path}" + (f" ({outcome.text})" if outcome.text else "")


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("sync", __doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="where runs are stored, or one file")
    parser.add_argument("--report-to", metavar="URL", help="the portal")
    return parser
