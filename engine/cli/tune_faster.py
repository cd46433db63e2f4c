"""`python -m engine tune --faster -- COMMAND`: the lines that make a training faster, measured on the script itself."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from ..errors import SpecError
from ..program import PROGRAM
from ..race.row import Row
from ..race.text import FIGURES, HEADINGS, cells, headline, lines_to_paste, memory_savers, nothing_found
from ..results.result_file import write_result
from ..results.speed_rounds import SpeedClaim
from ..settings.spec_checks import not_offered
from ..text.units import format_bytes, format_duration, format_percent
from ..tune.devices import devices_held
from ..tune.faster.result import FasterResult
from ..tune.faster.run import make_faster
from ..tune.faster.spec import OWN, UNUSED, FasterSpec
from ..tune.faster.variants import BY_NAME
from ..tune.spec import BATCH_SIZE_PLACE, TuneSpec
from ..tune.training import describe_waiting
from .printing.console import Console
from .printing.output import print_json
from .printing.terminal import BOLD, say, say_lines, table_lines, width_of, wrapped

NONE_RACED = "Nothing found: no change of the speed applies here, or trains the same."
NOT_REPORTED = "a portal does not store such a run yet; keep its --result-file"


def faster(options: SimpleNamespace, command: Sequence[str]) -> int:
    """Run `tune --faster`, and print what was found."""
    spec = spec_of(options, command)
    spec.check_program()
    spec.check_script()
    stream = sys.stderr if options.json else sys.stdout
    console = nullcontext(print_json) if options.events else Console(stream)
    wait_seconds = math.inf if options.wait_for_device else 0.0

    def keep(result: FasterResult) -> None:
        if options.result_file is not None:
            write_result(options.result_file, 0, result)

    with console as emit:
        with devices_held(spec, f"{PROGRAM} tune {spec.model}", wait_seconds=wait_seconds):
            result = make_faster(spec, emit, keep=keep)
        if options.json:
            print_json(result.to_dict())
        elif not options.events:
            say_found(result)
    return 0


def spec_of(options: SimpleNamespace, command: Sequence[str]) -> FasterSpec:
    """Read what is requested. Raises SpecError for the options of a search."""
    names = TuneSpec.__dataclass_fields__.keys() - {"command"}
    given: dict[str, Any] = {n: value for n in sorted(names) if (value := getattr(options, n, None)) is not None}
    for name in (*UNUSED, "function", "python", "warm", "report_to", "spec"):
        if given.pop(name, None) is not None or getattr(options, name, None) is not None:
            why = NOT_REPORTED if name == "report_to" else "is of a search; --faster stays at today's batch size"
            raise SpecError(name, why)
    if "batch" not in given and not any(map(BATCH_SIZE_PLACE.search, command)):
        given["batch"] = OWN
    return FasterSpec(tuple(command), tried=tried_of(options.tried), **given)


def tried_of(text: str | None) -> tuple[str, ...]:
    """Read the names of `--try a,b,c`."""
    names = tuple(name for each in (text or "").split(",") if (name := each.strip()))
    for name in names:
        if name not in BY_NAME:
            raise SpecError("tried", not_offered(name, tuple(BY_NAME)))
    return names


def say_found(result: FasterResult) -> None:
    """Print the headline in bold, the table, and the lines to paste."""
    width = width_of(sys.stdout)
    say("")
    say("\n".join(wrapped([headline_of(result)], width, hanging="")), style=BOLD)
    say_lines(wrapped(_lines_below(result), width))
    tried = [row for row in result.rows if row.memory_bytes is not None]
    rows = [cells(row, result.today.memory_bytes) for row in tried]
    if rows:
        say_lines(["", *table_lines(HEADINGS, rows, width, right=FIGURES)])
    left_out = [f"{row.label}: {row.reason}." for row in result.rows if row.memory_bytes is None and row.reason]
    say_lines(wrapped(["", "Not compared:", *(f"  {line}" for line in left_out)], width) if left_out else [])
    savers = tuple(row.name for row in memory_savers(result.rows, result.chosen, result.today.memory_bytes))
    for heading, names in (("Paste:", result.chosen), ("Paste, for less memory:", savers)):
        if lines := lines_to_paste(names, result.rows):
            say_lines(["", heading, *(f"  {line}" for line in lines)])


def headline_of(result: FasterResult) -> str:
    """Return what was found in a sentence."""
    found = nothing_found([result.verdict])
    if not result.raced and result.verdict.claim is SpeedClaim.NO_GAIN:
        found = NONE_RACED
    if result.chosen and result.verdict.gain is not None:
        label = " + ".join(row.label for row in result.rows if row.name in result.chosen)
        lines = len(lines_to_paste(result.chosen, result.rows))
        found = headline(result.verdict.gain, result.verdict.claim, lines=lines, label=label, savings=result.savings)
    savers = [] if result.chosen else memory_savers(result.rows, result.chosen, result.today.memory_bytes)
    return " ".join([*(f"{_less_memory(row, result)}." for row in savers[:1]), found])


def _less_memory(row: Row, result: FasterResult) -> str:
    share = 1 - (row.memory_bytes or 0) / result.today.memory_bytes
    return f"{row.label}: {format_percent(share)} less memory"


def _lines_below(result: FasterResult) -> list[str]:
    """Return what stands below the headline: the loader, memory, remarks, what was compared."""
    today, kind = result.today, result.device.kind
    lines = []
    if today.is_limited_by_loader and today.waiting_fraction is not None:
        lines.append(describe_waiting(today.waiting_fraction, today.batch_size, kind))
    if result.chosen and result.chosen_memory_bytes is not None:
        before, after = (format_bytes(each) for each in (today.memory_bytes, result.chosen_memory_bytes))
        lines.append(f"Memory: {after}, today {before}.")
    savers = memory_savers(result.rows, result.chosen, today.memory_bytes)
    lines += [f"{_less_memory(row, result)}." for row in savers[0 if result.chosen else 1 :]]
    lines += [f"{each[:1].upper()}{each[1:]}." for each in result.remarks]
    where = f"{result.starts} starts of {result.spec.model} with batch {today.batch_size} on {result.device.name}"
    return [*lines, f"{where}, {format_duration(result.seconds)}."]
