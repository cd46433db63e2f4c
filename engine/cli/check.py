"""`python -m engine check result.json --baseline main.json`: stop a pipeline where a training got worse.

    python -m engine bert --json > result.json
    python -m engine check result.json --baseline main.json --fail-below 5%
    python -m engine check result.json --baseline https://lab/api/v1/runs/812/ --junit check.xml
    python -m engine check result.json --baseline https://lab/      the newest trusted run of this workload and device
    python -m engine check result.json --max-memory 24GiB --min-batch 16

A speed is called worse only where its interval allows that; batch size and memory are exact. --max-memory is of the
batch size you train with today, or of the recommended one where that was not measured. The token of a portal is read
from MEMORYMARK_TOKEN alone. In GitHub Actions the table is added to the job's summary.

Exit status: 0 no regression, 7 a regression, 2 the two cannot be compared, or bad arguments.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ..errors import EngineError, SpecError
from ..gate.baseline import find_baseline
from ..gate.changes import changes
from ..gate.compare import FAIL_BELOW, Demands, Measured, compare
from ..gate.report import is_regression, junit, lines, markdown
from ..result_file import read_document
from ..units import parse_bytes
from .exit_status import EXIT_REGRESSION
from .options import command_parser

SUMMARY = "GITHUB_STEP_SUMMARY"


def main(arguments: list[str]) -> int:
    """Compare a result with a baseline; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return _check(options)
    except EngineError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status
    except OSError as error:
        sys.stderr.write(f"error: {error.filename} cannot be written: {error.strerror}\n")
        return EngineError.exit_status


def _check(options: argparse.Namespace) -> int:
    if options.baseline is None and options.max_memory is None and options.min_batch is None:
        raise SpecError("baseline", "give a baseline, --max-memory or --min-batch: else there is nothing to check")
    now = Measured.of(read_document(options.result, "result"), "result")
    baseline, source = find_baseline(options.baseline, now) if options.baseline is not None else (None, None)
    rows = compare(now, baseline, Demands(options.fail_below, options.max_memory, options.min_batch))
    is_worse = is_regression(rows)
    suspects = changes(now, baseline) if is_worse and baseline is not None else None
    against = f" against {source}" if source else ""
    title = f"MemoryMark: {now.spec.get('model')} on {now.device.name}{against}"
    if options.markdown == "-":
        print(markdown(title, rows, suspects))
    else:
        print("\n".join([title, *lines(rows, suspects)]))
    summary = options.markdown or os.environ.get(SUMMARY)
    if summary and summary != "-":
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(markdown(title, rows, suspects) + "\n")
    if options.junit is not None:
        options.junit.write_bytes(junit(title, rows, suspects))
    return EXIT_REGRESSION if is_worse else 0


def _share(text: str) -> float:
    """Read "5%" or "0.05"."""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share such as 5% or 0.05")
    return number


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def _batch_size(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no batch size")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("check", __doc__)
    add = parser.add_argument
    add("result", help="a file with the JSON of a result, or - for standard input")
    add("--baseline", metavar="URL|FILE", help="a result, a run's address in the API, or a portal")
    help_text = "how much worse than the baseline a figure may be (5%%)"
    add("--fail-below", type=_share, default=FAIL_BELOW, metavar="SHARE", help=help_text)
    add("--max-memory", type=_size, metavar="SIZE", help="what today's batch size may take, such as 24GiB")
    add("--min-batch", type=_batch_size, metavar="N", help="what the largest batch size must reach")
    add("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    add("--markdown", metavar="FILE", help=f"add a Markdown table to a file, or print it for - (${SUMMARY})")
    return parser
