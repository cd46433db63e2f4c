"""`python -m engine fit qlora.yml --gpu rtx-4090`: whether the training of another tool's file fits a GPU."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..describe.estimate import describe_known_error
from ..errors import SpecError
from ..estimate import gpus
from ..estimate.estimator import Estimator
from ..estimate.smallest_card import that_fit
from ..estimate.types import Estimate
from ..estimate.what_to_change import Scope, Variant, WhatToChange
from ..program import PROGRAM
from ..settings.catalog import WORKLOADS
from ..settings.spec_checks import numbers_setting
from ..text.units import format_bytes, format_percent
from ..training_files.changed_file import changeable, changed_text, lines_of, write
from ..training_files.entries import SUFFIXES, Entry
from ..training_files.tools import Meaning
from ..training_files.training_file import TrainingFile, read_training_file
from ..trainings.catalogue.counted import counted
from .exit_status import EXIT_FITS_NOT
from .options import settings_given
from .printing.console import Console
from .printing.estimate_table import memory_at, title, used_text
from .printing.output import info_event, print_json
from .printing.terminal import BOLD, say, say_lines, table_lines, width_of, wrapped

SHOWN = 6


def names_file(model: str | None) -> bool:
    """Whether the word in place of a model is a file, or would be one if it were there."""
    return model is not None and model not in WORKLOADS and (model.endswith(SUFFIXES) or Path(model).is_file())


def fit_file(options: SimpleNamespace) -> int:
    file, ids = _read(options), options.gpu.split(",") if options.gpu else list(gpus.gpus())
    if options.write is not None and len(ids) != 1:
        raise SpecError("write", "is for one GPU: name it with --gpu")
    cards = [gpus.find_by_words(gpu_id) for gpu_id in ids]
    size = file.spec.current_batch_size
    with Console(sys.stderr) as emit:
        spec = counted(file.spec, lambda text: emit(info_event(text)))
        estimator = Estimator(spec, emit=emit, changeable=changeable(file))
        estimates = estimator.estimates(cards, (size,), Scope.FIRST if len(cards) == 1 else None)
    fitting, changes = that_fit(estimates, size), estimator.answers.get("what_to_change")
    change = _change(file, changes) if isinstance(changes, WhatToChange) and not fitting else None
    if options.json:
        print_json(_document(file, estimates, fitting, change))
    else:
        _say(file, estimates, fitting, change)
    if change and options.write is not None:
        write(options.write, changed_text(file, change[1]))
        say(f"Written: {options.write}")
    return 0 if fitting and not file.not_estimated else EXIT_FITS_NOT


def _read(options: SimpleNamespace) -> TrainingFile:
    given = settings_given(SimpleNamespace(**{**vars(options), "model": None}))
    if "ranks" in given:
        counts = numbers_setting("ranks", given["ranks"], "4")
        if len(counts) != 1:
            raise SpecError("ranks", "is one number for a file")
        (given["ranks"],) = counts
    if options.batch_size is not None:
        given["current_batch_size"] = options.batch_size
    return read_training_file(Path(options.model), given)


def _change(file: TrainingFile, found: WhatToChange) -> tuple[Variant, dict[str, Any]] | None:
    for variant in found.advised:
        if (lines := lines_of(file, variant)) is not None:
            return variant, lines
    return None


def _say(
    file: TrainingFile,
    estimates: Sequence[Estimate],
    fitting: Sequence[Estimate],
    change: tuple[Variant, dict[str, Any]] | None,
) -> None:
    width = width_of(sys.stdout)
    say("\n".join(wrapped([_headline(file, estimates, fitting)], width, hanging="")), style=BOLD)
    say_lines(["", *wrapped([title(file.spec)], width), *_rows(estimates, file.spec.current_batch_size, width), ""])
    if change:
        variant, lines = change
        shown = [f"  {_line(file, key)}{key}: {_shown(value)}" for key, value in lines.items()]
        memory = format_bytes(variant.memory_bytes)
        say_lines([*wrapped([f"Smallest change that fits ({memory}; {'; '.join(variant.costs)}):"], width), *shown, ""])
    elif len(estimates) == 1 and not fitting:
        say_lines(wrapped(["No line of this file that was tried makes it fit."], width))
    say_lines(wrapped(_notes(file, estimates[0]), width))


def _headline(file: TrainingFile, estimates: Sequence[Estimate], fitting: Sequence[Estimate]) -> str:
    size, not_estimated = file.spec.current_batch_size, ", ".join(each.key for each in file.not_estimated)
    if len(estimates) > 1:
        of_all = f"fits {len(fitting)} of {len(estimates)} GPUs with the margin of error"
        first = f"; the one with the least memory: {fitting[0].place}" if fitting else ""
        words = f"ESTIMATE: {file.path.name} {of_all}{first}"
    else:
        (made,) = estimates
        at = memory_at(made, size)
        figures = f"{format_bytes(at.used_bytes)} of {format_bytes(made.gpu.total_bytes)}"
        margin = format_percent(made.margin_fraction)
        outcome = "fits" if fitting else f"may not fit: not with {margin} more" if at.fits else "does not fit"
        words = f"ESTIMATE: {file.path.name} {outcome} on {made.place}: {figures} at batch {size:,}"
    return f"{words}; NOT ESTIMATED: {not_estimated}." if not_estimated else f"{words}."


def _rows(estimates: Sequence[Estimate], size: int, width: int | None) -> list[str]:
    rows = []
    for made in sorted(estimates, key=lambda each: each.gpu.total_bytes):
        at = memory_at(made, size)
        sizes = map(made.size_text, (made.largest_batch_size, made.safe_batch_size))
        rows.append((made.place, format_bytes(made.gpu.total_bytes), used_text(at), *sizes))
    headings = ("GPU", "memory", f"batch {size:,}", "largest", "with margin")
    return ["", *table_lines(headings, rows, width, right=range(1, len(headings)))]


def _notes(file: TrainingFile, made: Estimate) -> list[str]:
    key = file.line_of(Meaning.BATCH_SIZE)
    prove = f"{PROGRAM} tune --batch-in {file.path}:{key.key} -- {file.tool.command} {file.path}" if key else ""
    return [
        *(f"Assumed: {each}." for each in file.assumed),
        *([f"NOT ESTIMATED, and changes the memory: {_named(file.not_estimated)}."] if file.not_estimated else []),
        *([f"Keys not known here, taken as harmless: {_named(file.unknown)}."] if file.unknown else []),
        f"Read ({file.tool.name}): {_named(file.read, len(file.read))}. {len(file.harmless)} others do not matter.",
        f"Known error: {describe_known_error(made.known_error, made.spec.ranks)}. x: does not fit.",
        f"Trace: torch {made.versions['torch']}, transformers {made.versions['transformers']}. Nothing was measured.",
        *([f"Prove it: {prove}"] if prove and not file.path.suffix.endswith("sh") else []),
    ]


def _named(entries: Sequence[Entry], most: int = SHOWN) -> str:
    named = [f"{each.key} (line {each.line})" for each in entries[:most]]
    return ", ".join([*named, *([f"{len(entries) - most} more"] if len(entries) > most else [])])


def _line(file: TrainingFile, key: str) -> str:
    entry = next((each for each in file.read if each.key == key), None)
    return f"line {entry.line}  " if entry else "new line  "


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _document(
    file: TrainingFile,
    estimates: Sequence[Estimate],
    fitting: Sequence[Estimate],
    change: tuple[Variant, dict[str, Any]] | None,
) -> dict[str, Any]:
    groups = ("read", "not_estimated", "unknown", "harmless")
    return {
        "file": str(file.path),
        "tool": file.tool.name,
        "fits": [made.gpu.id for made in fitting],
        "settings": file.spec.to_dict(),
        "assumed": list(file.assumed),
        **{group: [{"key": each.key, "line": each.line} for each in getattr(file, group)] for group in groups},
        "change": change and change[1],
        "estimates": [made.to_dict() for made in estimates],
    }
