"""PURE: what is stored of the progress of an attempt, read member by member: what cannot be read is left out.

It is written while the engine runs, by this portal or by a sender on another machine, and read by pages alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, ValidationError, convert

MOST_SECONDS = 1e9
"""Seconds, longer than any run: a moment this far from now can still be stored."""

Count = Annotated[int, Meta(ge=0, lt=2**53)]
Size = Annotated[int, Meta(ge=1, lt=2**53)]
Seconds = Annotated[float, Meta(ge=0, le=MOST_SECONDS)]

_Moment = Annotated[float, Meta(ge=0, le=2**40)]
_FORMS: dict[str, Any] = {
    "phase": str,
    "since": Seconds,
    "stage": str,
    "stage_since": Seconds,
    "import_seconds": Seconds,
    "expected": Count,
    "device_kind": str,
    "turn": tuple[Count, Count, Seconds],
    "measured": list[Seconds],
    "left": tuple[Seconds, Seconds],
    "ends_at": _Moment,
    "batch_size": Size,
    "step": Count,
    "round": Count,
    "rounds_expected": Count,
    "timing_seconds_left": Seconds,
    "cards_wanted": Count,
    "cards": Count,
    "cards_done": Count,
}


def read_progress(stored: object) -> dict[str, Any]:
    """Return the members in the form that `analysis.runs.queue.progress.attempt_set` describes."""
    if not isinstance(stored, Mapping):
        return {}
    read = {name: stored[name] for name, form in _FORMS.items() if name in stored and is_of(form, stored[name])}
    if "cards" in read and "cards_done" not in read:
        del read["cards"]
    phases = stored.get("phases")
    if isinstance(phases, Mapping):
        read["phases"] = {name: since for name, since in phases.items() if is_of(Seconds, since)}
    return read


def expected_size(estimate: object) -> int | None:
    """Return the largest size that a stored estimate predicts; None where it has none to read."""
    size = estimate.get("largest_batch_size") if isinstance(estimate, Mapping) else None
    return size if size is not None and is_of(Count, size) else None


def is_of(form: Any, value: object) -> bool:
    """Whether a JSON value is of this type, and within its bounds."""
    try:
        convert(value, form)
    except ValidationError:
        return False
    return True
