"""`python -m engine check result.json --baseline main.json`: stop a pipeline where a training got worse."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import rich_click as click

from ..errors import EngineError, SpecError
from ..facts.result_file import read_document
from ..gate.baseline import find_baseline
from ..gate.changes import Difference, changes
from ..gate.compare import FAIL_ABOVE, FAIL_BELOW, Demands, Row, compare
from ..gate.origin import ResultOrigin
from ..gate.report import is_regression, junit, lines, markdown
from ..program import PROGRAM
from ..questions.documents.measured import Measured
from ..text.printable import printable
from ..text.units import parse_bytes
from .command import OUTPUT, Command, Text, argument, flag, option
from .exit_status import EXIT_REGRESSION
from .options import FILE
from .printing.terminal import say

COMPARED, ALLOWED = "What to compare", "What is allowed"
HELP = f"""Stop a pipeline where a training got worse.

A portal's address stands for its newest trusted run of this workload and device. A speed is called worse only where
its interval allows that; batch size and memory are exact. The token of a portal is read from MEMORYMARK_TOKEN.

\b
{PROGRAM} bert --json > result.json
{PROGRAM} check result.json --baseline main.json --fail-below 5%
{PROGRAM} check result.json --baseline https://lab/api/v1/runs/812/
{PROGRAM} check result.json --baseline https://lab/
{PROGRAM} check result.json --max-memory 24GiB --min-batch 16
"""


def _check(options: SimpleNamespace) -> int:
    if options.baseline is None and options.max_memory is None and options.min_batch is None:
        raise SpecError("baseline", "give a baseline, --max-memory or --min-batch: else there is nothing to check")
    document = read_document(options.result, "result")
    now, origins = Measured.of(document, "result"), [ResultOrigin.of(document, "result", options.result)]
    if options.trusted_only:
        origins[0].check_trusted(is_from_portal=False)
    baseline = None
    if options.baseline is not None:
        found = find_baseline(options.baseline, now, trusted_only=options.trusted_only)
        baseline = found.measured
        origins.append(found.origin)
    demands = Demands(options.fail_below, options.fail_above, options.max_memory, options.min_batch)
    rows = compare(now, baseline, demands)
    is_worse = is_regression(rows)
    suspects = changes(now, baseline) if is_worse and baseline is not None else None
    against = f" against {origins[-1].place}" if baseline is not None else ""
    title = printable(f"MemoryMark: {now.spec.get('model')} on {now.device.name}{against}")
    try:
        _write(options, title, rows, suspects, [origin.doubt for origin in origins if origin.doubt])
    except OSError as error:
        raise EngineError(f"{error.filename} cannot be written: {error.strerror}") from error
    return EXIT_REGRESSION if is_worse else 0


def _write(
    options: SimpleNamespace,
    title: str,
    rows: Sequence[Row],
    suspects: Sequence[Difference] | None,
    doubts: Sequence[str],
) -> None:
    table = markdown(title, rows, suspects, doubts)
    say(table if options.markdown == "-" else "\n".join([title, *lines(rows, suspects, doubts)]))
    summary = options.markdown or os.environ.get("GITHUB_STEP_SUMMARY")
    if summary and summary != "-":
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(f"{table}\n")
    if options.junit is not None:
        options.junit.write_bytes(junit(title, rows, suspects, doubts))


def _share(text: str) -> float:
    """Read "5%" or "0.05"."""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise click.BadParameter(f"{text!r} is no share such as 5% or 0.05")
    return number


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as exc:
        raise click.BadParameter(str(exc)) from exc


def _share_option(name: str, usual: float, help: str) -> click.Option:
    shown = f"{usual:.0%}"
    return option(name, type=_share, default=str(usual), panel=ALLOWED, metavar="SHARE", help=help, default_text=shown)


def _params() -> list[click.Parameter]:
    return [
        argument("result", required=True, type=Text("file"), panel=COMPARED, help="JSON of a result, or -"),
        option("--baseline", panel=COMPARED, metavar="URL|FILE", help="Result, API address of a run, or portal"),
        flag("--trusted-only", panel=COMPARED, help="Refuse a reported run that its portal does not trust"),
        _share_option("--fail-below", FAIL_BELOW, "How much lower than the baseline batch size and speed may be"),
        _share_option("--fail-above", FAIL_ABOVE, "How much more memory than the baseline it may take"),
        option(
            "--max-memory",
            type=_size,
            panel=ALLOWED,
            metavar="SIZE",
            help="Memory for today's batch size, such as 24GiB",
        ),
        option(
            "--min-batch", type=click.IntRange(1), panel=ALLOWED, metavar="N", help="Batch size that must still train"
        ),
        option("--junit", type=FILE, panel=OUTPUT, metavar="FILE", help="Write JUnit XML"),
        option(
            "--markdown",
            panel=OUTPUT,
            metavar="FILE",
            help="Add a Markdown table to this file, or print it for -",
            default_text="$GITHUB_STEP_SUMMARY",
        ),
    ]


COMMAND = Command(
    "check",
    _check,
    params=_params(),
    help=HELP,
    epilog="Exit status: 0 no regression, 7 a regression, 2 not comparable, refused, or bad arguments.",
)
