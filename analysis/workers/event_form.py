"""PURE: the form of the events whose content is stored and shown: checked before anything of one is used.

An event comes from the engine of this portal, from one of another version, or from any program that reports a run.
Members that nothing here knows are passed over: they are not stored either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta, convert, defstruct

from engine.answers import Impossible, impossible_estimate, impossible_facts
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
    """Raise ValueError, naming the member, for an event of a known name whose content is not of its form.

    Devices and estimates are held to the rules for result documents, too.
    """
    name = event["event"]
    wrong: Iterable[Impossible] = ()
    if name == "estimate":
        wrong = impossible_estimate(convert(event.get("estimate"), Estimate))
    elif name in _FORMS:
        found: Any = convert(event, _FORMS[name])
        wrong = impossible_facts(found.device) if name == "device" else ()
    for each in wrong:
        raise ValueError(f"{each.field}: must be {each.allowed}, got {printable(repr(each.claimed))}")
