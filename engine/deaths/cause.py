"""PURE: why a training died, by what it left behind. A cause that the text does not show is not claimed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..facts.result import Outcome
from ..measurement.oom import classify
from ..text.units import GIB, MIB
from .figures import CLEARLY_OTHERS, OutOfMemory, read_figures
from .moments import LATE_STEPS, Moment, last_step, moment_of
from .signs import ERROR, OTHER_ENDS, OUT_OF_DEVICE_MEMORY, Cause

SUBSTANTIAL_BYTES, SUBSTANTIAL_FRACTION = 512 * MIB, 0.05
"""Memory in pieces is the cause where it is at least the request, this much, and this share of the card."""
FULL, SPARE_BYTES, ROUNDED = 0.7, 256 * MIB, 0.98
"""A step needs more than the device has where the process and the request take this share of it. Where the request and
some more is free, a message does not say why it was refused. Its figures are rounded."""
OTHERS_BYTES, OTHERS_FRACTION = GIB, 0.1
"""Other processes are the cause where they hold the request, this much, and this share of the card."""


_CODE_LINE = re.compile(r'(File "[^"\n]*", line \d+[^\n]*\n)(?:\[rank\d+\]:)? {4,}[^\n]*')
"""A line of a program in a traceback may name any error."""


@dataclass(frozen=True, slots=True)
class Death:
    """Why a training died. `figures` are of an accelerator's message; `step` is the last that its output counted."""

    cause: Cause
    moment: Moment = Moment.UNKNOWN
    figures: OutOfMemory = OutOfMemory()
    step: int | None = None
    line: str = ""
    """The line that tells."""
    is_of_a_device: bool = False
    """Whether a GPU, or another accelerator, refused memory."""
    places: tuple[tuple[str, int], ...] = ()
    """Lines of the program with the live bytes that they asked for, the most first; known of a snapshot."""


def explain(text: str) -> Death:
    """Return the cause that a text shows. A GPU that ran out explains what followed: killed ranks, timeouts."""
    text = _CODE_LINE.sub(r"\1", text)
    if line := _line(OUT_OF_DEVICE_MEMORY, text):
        return _of_a_device(text, line)
    for cause, sign in OTHER_ENDS:
        if line := _line(sign, text):
            return Death(cause, moment_of(text), step=last_step(text), line=line)
    if line := _line(ERROR, text[max(0, text.rfind('  File "')) :]):
        is_memory = classify(line.partition(":")[0].rpartition(".")[2], line) is Outcome.OUT_OF_MEMORY
        cause = Cause.CANNOT_TELL if is_memory else Cause.NOT_MEMORY
        return Death(cause, moment_of(text), step=last_step(text), line=line, is_of_a_device=is_memory)
    return Death(Cause.CANNOT_TELL, moment_of(text), step=last_step(text))


def seen_by_its_process(death: Death, steps: int, *, was_evaluating: bool) -> Death:
    """Return a death with what its process knew: the steps that it had made, and whether it was evaluating."""
    is_evaluation = was_evaluating and death.moment in (Moment.TRAINING, Moment.UNKNOWN)
    found = replace(death, moment=Moment.EVALUATING if is_evaluation else death.moment, step=steps)
    if not death.is_of_a_device:
        return found
    return replace(found, cause=cause_on_a_device(found.figures, found.moment, steps))


def _line(pattern: re.Pattern[str], text: str) -> str:
    """Return the line in which the last match of a pattern ends; empty without one."""
    ends = [found.end() for found in pattern.finditer(text)]
    if not ends:
        return ""
    end = text.find("\n", ends[-1])
    return text[text.rfind("\n", 0, ends[-1]) + 1 : end if end >= 0 else None].strip()


def _of_a_device(text: str, line: str) -> Death:
    figures, moment, step = read_figures(text), moment_of(text), last_step(text)
    return Death(cause_on_a_device(figures, moment, step), moment, figures, step, line, is_of_a_device=True)


def cause_on_a_device(figures: OutOfMemory, moment: Moment, step: int | None) -> Cause:
    requested, total = figures.requested or 0, figures.total or 0
    in_pieces = figures.in_pieces or 0
    is_free = (figures.free or 0) >= requested + SPARE_BYTES  # the figures then explain nothing
    are_pieces = not is_free and in_pieces >= max(ROUNDED * requested, SUBSTANTIAL_BYTES, SUBSTANTIAL_FRACTION * total)
    are_others = not is_free and figures.others >= max(
        requested - (figures.free or 0), min(OTHERS_BYTES, CLEARLY_OTHERS * total), OTHERS_FRACTION * total
    )
    if total and are_others and not (are_pieces and in_pieces >= figures.others):
        return Cause.ANOTHER_PROCESS
    if figures.has_figures and are_pieces:
        return Cause.IN_PIECES
    places = {
        Moment.LOADING: Cause.LOADING,
        Moment.EVALUATING: Cause.EVALUATION,
        Moment.SAVING: Cause.SAVING,
    }
    if moment in places:
        return places[moment]
    if step is not None and step >= LATE_STEPS:
        return Cause.LATE
    if not figures.has_figures:
        return Cause.TOO_LARGE if moment is Moment.STEP else Cause.CANNOT_TELL
    taken = max(
        (figures.allocated or 0) + in_pieces, total - figures.free - figures.others if figures.free is not None else 0
    )
    is_full = taken + requested >= FULL * total
    return Cause.TOO_LARGE if is_full and not is_free else Cause.CANNOT_TELL
