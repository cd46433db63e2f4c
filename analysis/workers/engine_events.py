"""PURE: the engine's output lines -> events, their form, and events -> lines of the run's log.

An event comes from the engine of this portal, from one of another version, or from any program that reports a run: its
form is checked before anything of it is used. Members that nothing here knows are passed over: they are not stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta, convert, defstruct

from analysis.runs.services import LogLine
from engine.describe.time_left.phase_facts import event_line
from engine.estimate.types import Estimate
from engine.facts.result import DeviceFacts
from engine.questions.answers import Impossible, impossible_estimate, impossible_facts
from engine.text.printable import printable
from engine.text.units import sentence_case

EVENTS = (
    *("started", "phase", "stage", "device", "probe_started", "progress", "probe", "timing"),
    *("estimate", "log", "result", "error"),
)
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
_SHOWN_OF_GARBAGE = 200


def parse_event(line: bytes) -> dict[str, Any] | None:
    """Read an event from a line; None for another line. NaN is refused: PostgreSQL's JSON has no NaN."""
    try:
        event = json.loads(line.replace(b"\\u0000", b""), parse_constant=_refuse)
        json.dumps(event, ensure_ascii=False).encode()  # a lone surrogate cannot be stored
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and event.get("event") in EVENTS else None


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


def garbage_event(line: bytes) -> dict[str, Any]:
    shown = line[:_SHOWN_OF_GARBAGE].decode(errors="replace").strip()
    return {"event": "log", "level": "warning", "message": f"Skipped a line that is not an event: {shown}"}


def is_result(line: bytes) -> bool:
    return re.match(rb'\s*\{\s*"event"\s*:\s*"result"', line) is not None


def log_line(event: dict[str, Any]) -> LogLine | None:
    """Return the log line for an event; None where it would add nothing."""
    match event:
        case {"event": "stage", "stage": stage}:
            return LogLine("info", sentence_case(str(stage)[:200]))
        case {"event": "error", "error": {"message": message}}:
            return LogLine("error", str(message))
        case {"event": "log", "level": "warning", "message": message}:
            return LogLine("warning", str(message))
    line = event_line(event)
    return None if line is None else LogLine("info", sentence_case(line) if event["event"] == "phase" else line)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
