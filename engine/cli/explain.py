"""`python -m engine explain train.log`: why a training died, by the text that it left."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from ..deaths.cause import explain
from ..deaths.snapshot import SUFFIX, read_snapshot
from ..deaths.words import changes, document, evidence, headline
from ..errors import SpecError
from ..program import PROGRAM
from ..text.masking import masked_text
from ..text.printable import printable_lines
from .command import OUTPUT, Command, argument, flag
from .printing.output import print_json
from .printing.terminal import BOLD, say, say_lines, width_of, wrapped

READ_BYTES = 2 << 20
"""The end of a log that is read: a training dies at its end."""
STDIN = "-"
HELP = f"""Say why a training died, by the traceback, log, Slurm output or memory snapshot (.pickle) that it left.

Nothing is run, and torch is not needed. Where the text does not show the cause, the answer is "cannot tell".

\b
{PROGRAM} explain slurm-4711.out
python train.py 2>&1 | tee log; {PROGRAM} explain log
{PROGRAM} explain - < error.txt
"""


def _explain(options: SimpleNamespace) -> int:
    if options.file.endswith(SUFFIX):
        death = read_snapshot(Path(options.file))
    else:
        death = explain(printable_lines(_read(options.file)))
        death = replace(death, line=masked_text(death.line))
    if options.json:
        print_json(document(death))
        return 0
    width = width_of(sys.stdout)
    say("\n".join(wrapped([headline(death)], width, hanging="")), style=BOLD)
    say_lines(["", *wrapped(evidence(death), width)] if evidence(death) else [])
    say_lines(["", "What helps:", *wrapped([f"- {each}" for each in changes(death)], width)])
    return 0


def _read(name: str) -> str:
    """Return the end of a file, or of standard input. Raises SpecError where there is nothing to read."""
    try:
        if name == STDIN:
            read = sys.stdin.buffer.read()[-READ_BYTES:]
        else:
            with Path(name).open("rb") as file:
                file.seek(max(0, Path(name).stat().st_size - READ_BYTES))
                read = file.read(READ_BYTES)
    except OSError as error:
        raise SpecError("file", f"{name} cannot be read: {error.strerror}") from error
    if not read.strip():
        raise SpecError("file", f"{'standard input' if name == STDIN else name} holds no text")
    return read.decode(errors="replace").replace("\r", "\n")


COMMAND = Command(
    "explain",
    _explain,
    params=[
        argument(
            "file", panel="What to read", help="The text; - reads standard input.", metavar="FILE|-", required=True
        ),
        flag("--json", panel=OUTPUT, help="Print a JSON document."),
    ],
    help=HELP,
    epilog="Exit status: 0 read, also where the cause cannot be told; 2 no text.",
)
