"""PURE: the form of the events whose content is stored and shown: checked before anything of one is used.

An event comes from the engine of this portal, from one of another version, or from any program that reports a run.
Members that nothing here knows are passed over: they are not stored either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, convert, defstruct

from engine.answers import impossible_estimate, impossible_facts
from engine.estimate.types import Estimate
from engine.results.result import DeviceFacts
from engine.text.printable import printable

Count = Annotated[int, Meta(ge=0, lt=2**53)]
Size = Annotated[int, Meta(ge=1, lt=2**53)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]  # longer than any run: a moment this far from now can still be stored

_NO_SECONDS, _NO_COUNT = (Seconds | None, None), (Count | None, None)
_FORMS = {
    "phase": defstruct("phase", [("phase", str), ("seconds", *_NO_SECONDS), ("cards", *_NO_COUNT)]),
    "probe_started": defstruct("probe_started", [("batch_size", Size)]),
    "progress": defstruct("progress", [("batch_size", Size | None, None), ("step", *_NO_COUNT)]),
    "timing": defstruct(
        "timing",
        [
            *(("round", Size), ("batch_sizes", tuple[Size, ...], ()), ("rounds_expected", *_NO_COUNT)),
            *(("seconds_left", *_NO_SECONDS), ("seconds_left_at_most", *_NO_SECONDS)),
        ],
    ),
    "device": defstruct("device", [("device", DeviceFacts), ("environment", dict[str, Any] | None, None)]),
}
"""The members that are read, with their types and, where they may be missing, None. An unknown phase is ignored."""


def check_event(event: Mapping[str, Any]) -> None:
    """Raise ValueError for an event of a known name whose content is not of its form; it names the member."""
    name = event["event"]
    if name == "estimate":
        check_estimate(event.get("estimate"))
    elif name in _FORMS:
        found: Any = convert(event, _FORMS[name])
        if name == "device":
            check_device(found.device)


def check_device(facts: DeviceFacts) -> None:
    """Raise ValueError for a device that cannot be, by the rule for result documents."""
    for wrong in impossible_facts(facts):
        raise ValueError(f"{wrong.field}: must be {wrong.allowed}, got {printable(repr(wrong.claimed))}")


def check_estimate(stored: object) -> None:
    """Raise ValueError for an estimate that no page could show."""
    for wrong in impossible_estimate(convert(stored, Estimate)):
        raise ValueError(f"{wrong.field}: must be {wrong.allowed}, got {wrong.claimed}")
