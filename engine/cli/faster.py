"""`python -m engine faster bert`: race the settings that people forget, and print what makes the training faster."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

from ..facts.run_kind import RunKind
from ..program import PROGRAM
from ..questions.faster.result import FasterResult
from ..questions.faster.run import race
from ..questions.faster.spec import SETTINGS, FasterSpec
from ..race.lines import distinct
from ..race.text import describe_basis, describe_compiling, describe_numbers, speed_text
from ..race.variants import CHANGES
from ..text.units import format_bytes, format_duration
from ..trainings.catalogue.counted import counted
from .command import Command
from .options import device_hold, settings_given, spec_given
from .printing.console import receiver
from .printing.output import info_event
from .printing.terminal import BOLD, say, say_lines, table_lines, width_of, wrapped
from .reporting import Reporting, run_params

HELP = f"""Race the settings that people forget, and say what makes this training faster.

Each change, and combinations of those that gain, train beside today's settings in turns. Changes: {", ".join(CHANGES)}.

\b
{PROGRAM} faster bert                     all changes that apply
{PROGRAM} faster gpt2 --try bf16,compile  only these
"""
NONE = "-"


def _faster(options: SimpleNamespace) -> int:
    given = spec_given(settings_given(options, SETTINGS), options.spec)
    spec = FasterSpec.from_dict(given)
    with receiver(options, spec.to_dict()) as emit:
        if spec.config is not None:
            known = counted(spec.run_spec(), lambda text: emit(info_event(text)))
            spec = replace(spec, config_parameters=known.config_parameters)
        with Reporting.of(options).run(RunKind.RACE, spec, emit) as run, run.shown(options, say_race) as keep:
            hold = device_hold(run.emit, waits=options.wait_for_device)
            race(spec, run.emit, keep=keep, hold=hold, started_as=run.started_as)
    return 0


def say_race(result: FasterResult) -> None:
    width = width_of(sys.stdout)
    say("")
    say(result.headline, style=BOLD)
    say_lines(table_of(result, width))
    say_lines(wrapped(notes_of(result), width))
    say_lines(lines_to_paste(result))


def table_of(result: FasterResult, width: int | None) -> list[str]:
    headings = ("what", "speed", "memory", "largest", "numbers", "compiling", "")
    rows = [
        (
            row.label,
            "1" if not row.entry else speed_text(row.speed, row.rough_speed, result.at_today) or NONE,
            NONE if row.memory_bytes is None else format_bytes(row.memory_bytes),
            NONE if row.largest_batch_size is None else f"{row.largest_batch_size:,}",
            describe_numbers(row.numbers),
            NONE if row.compile_seconds is None else describe_compiling(row.compile_seconds, row.pays_after_steps),
            row.reason or row.kind,
        )
        for row in sorted(result.rows, key=lambda row: row.place)
    ]
    sizes = [
        (
            f"{each.label}, batch {each.batch_size:,}",
            speed_text(each.speed, each.rough_speed, result.at_own_size) or NONE,
            "",
            "",
            "",
            "",
            each.reason or "",
        )
        for each in result.sizes
        if each.batch_size not in (0, result.batch_size)
    ]
    if not rows:
        return []
    table = table_lines(headings, [*rows, *sizes], width, right=(2, 3))
    return ["", f"At batch {result.batch_size:,} unless another one is named:", *table]


def notes_of(result: FasterResult) -> list[str]:
    rough = '"About": of too few rounds. "Not known": other programs used the cores.'
    own = "to the bit" if result.own_difference == 0 else f"within {result.own_difference or 0:.1e}"
    notes = [
        "",
        f"Speeds: blocks of steps in turns, each in a new process; rounds: {len(result.rounds)}, of which "
        f"{result.deciding.rounds} decide the headline alone. The others also chose between the changes. {rough}",
        f"Numbers: losses of the same batches from the same seed, without dropout; today's repeat {own}.",
        *filter(None, [describe_basis(result.savings)]),
        *(f"Not tried: {each.label}: {each.reason}." for each in result.not_tried),
        f"Took {format_duration(result.total_seconds)}.",
    ]
    return notes


def lines_to_paste(result: FasterResult) -> list[str]:
    """Return the lines for plain PyTorch, and for each library where they are others."""
    shown = distinct(result.lines)
    return [line for each in shown for line in ("", f"Lines to paste, {each.title}:", *(f"  {x}" for x in each.lines))]


COMMAND = Command(
    "faster",
    _faster,
    params=run_params(FasterSpec),
    help=HELP,
    epilog="Exit status: 0 also where nothing is found or claimed; others as `measure`.",
)
