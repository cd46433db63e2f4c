"""PURE: what a long start spends its time on, and what shortens it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...text.units import format_duration
from .notes.progress import Ended
from .notes.reading import Reading
from .ranked_command import OWN_PYTHON
from .spec import FunctionSpec, TuneSpec

LONG_SECONDS = 20.0
"""A start that takes less is not worth shortening."""
_LEAST_SECONDS = 0.5
_IMPORT, _BUILD = "until torch was imported", "data and model"

Mark = Sequence[Any]


def describe_parts(spec: TuneSpec | FunctionSpec, readings: Iterable[Reading], ended: Ended) -> str | None:
    """Write "a start takes 41 s: 12 s until torch was imported, ...; fewer rows shorten it"; None of a short one."""
    if spec.emulated_ranks:
        return None
    trained = next((reading for reading in readings if reading.has_trained), None)
    if trained is None or ended.wall_seconds <= LONG_SECONDS:
        return None
    parts = parts_of(trained.data["marks"], ended)
    shown = [f"{format_duration(seconds)} {name}" for name, seconds in parts.items() if seconds >= _LEAST_SECONDS]
    advice = what_shortens(max(parts, key=lambda name: parts[name]), spec)
    return f"a start takes {format_duration(ended.wall_seconds)}: {', '.join(shown)}{advice and f'; {advice}'}"


def parts_of(marks: Sequence[Mark], ended: Ended) -> dict[str, float]:
    """Return the seconds of each part, in their order; marks and the start's beginning are times of one clock."""
    steps = [at for at, name, *_ in marks if name == "step"]
    armed = next((at for at, name, *_ in marks if name == "armed"), ended.began)
    forward = next((mark[0] for mark in marks if mark[1:3] == ["phase", "forward"]), steps[0])
    return {
        _IMPORT: armed - ended.began,
        _BUILD: forward - armed,
        "the first step": steps[0] - forward,
        "the others": steps[-1] - steps[0],
        "to its end": ended.began + ended.wall_seconds - steps[-1],
    }


def what_shortens(longest: str, spec: TuneSpec | FunctionSpec) -> str:
    """Return what makes the longest part of a start shorter; empty where nothing is known to."""
    if isinstance(spec, FunctionSpec):
        can_be_warm = spec.starting == "process"
    else:
        can_be_warm = spec.function is not None and spec.command[0] == OWN_PYTHON
    if longest == _IMPORT and can_be_warm:
        return "--warm (in Python warm=True) imports once"
    return "fewer rows shorten it" if longest == _BUILD and not spec.catalogue else ""
