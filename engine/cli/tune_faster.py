"""`python -m engine tune --faster -- COMMAND`: the lines that make a training faster, measured on the script itself."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from ..errors import SpecError
from ..facts.run_kind import RunKind
from ..program import PROGRAM
from ..race.text import FIGURES, HEADINGS, cells, describe_basis, lines_to_paste
from ..text.units import format_duration
from ..trainings.script.devices import devices_held
from ..trainings.script.faster.result import OwnRaceResult
from ..trainings.script.faster.run import make_faster
from ..trainings.script.faster.spec import OWN, UNUSED, OwnRaceSpec
from ..trainings.script.spec import BATCH_SIZE_PLACE, TuneSpec
from .printing.console import receiver
from .printing.terminal import BOLD, say, say_lines, table_lines, width_of, wrapped
from .reporting import Reporting


def faster(options: SimpleNamespace, command: Sequence[str]) -> int:
    spec = spec_of(options, command)
    spec.check_program()
    spec.check_script()
    work, wait_seconds = f"{PROGRAM} tune {spec.model}", math.inf if options.wait_for_device else 0.0
    with (
        receiver(options) as emit,
        Reporting.of(options).run(RunKind.OWN_RACE, spec, emit) as run,
        run.shown(options, say_found) as keep,
        devices_held(spec, work, wait_seconds=wait_seconds),
    ):
        make_faster(
            spec,
            run.emit,
            keep=keep,
            started_as=run.started_as,
            may_overwrite=options.may_overwrite,
            keep_outputs=options.keep_outputs,
        )
    return 0


def spec_of(options: SimpleNamespace, command: Sequence[str]) -> OwnRaceSpec:
    """Read what is requested. Raises SpecError for the options of a search."""
    names = TuneSpec.__dataclass_fields__.keys() - {"command"}
    given: dict[str, Any] = {n: value for n in sorted(names) if (value := getattr(options, n, None)) is not None}
    for name in (*UNUSED, "function", "python", "warm", "spec"):
        if given.pop(name, None) is not None or getattr(options, name, None) is not None:
            raise SpecError(name, "is of a search; --faster stays at today's batch size")
    if "batch" not in given and not any(map(BATCH_SIZE_PLACE.search, command)):
        given["batch"] = OWN
    tried = tuple(name for each in (options.tried or "").split(",") if (name := each.strip()))
    return OwnRaceSpec(tuple(command), tried=tried, **given)


def say_found(result: OwnRaceResult) -> None:
    width = width_of(sys.stdout)
    say("")
    say("\n".join(wrapped([result.headline], width, hanging="")), style=BOLD)
    say_lines(wrapped(_lines_below(result), width))
    tried = [row for row in result.rows if row.memory_bytes is not None]
    rows = [cells(row, result.today.memory_bytes, result.verdict) for row in tried]
    if rows:
        say_lines(["", *table_lines(HEADINGS, rows, width, right=FIGURES)])
    left_out = [f"{row.label}: {row.reason}." for row in result.rows if row.memory_bytes is None and row.reason]
    say_lines(wrapped(["", "Not compared:", *(f"  {line}" for line in left_out)], width) if left_out else [])
    savers = tuple(row.name for row in result.savers)
    for heading, lines in (("Paste:", result.lines), ("Paste, for less memory:", lines_to_paste(savers, result.rows))):
        if lines:
            say_lines(["", heading, *(f"  {line}" for line in lines)])


def _lines_below(result: OwnRaceResult) -> list[str]:
    basis = filter(None, [describe_basis(result.savings)])
    size = result.today.stated_batch_size
    what = "as it is" if size is None else f"with batch {size}"
    where = f"{result.starts} starts of {result.spec.model} {what} on {result.device.name}"
    return [*result.sentences, *basis, f"{where}, {format_duration(result.total_seconds)}."]
