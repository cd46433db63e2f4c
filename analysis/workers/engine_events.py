"""PURE: the engine's output lines -> events, and events -> lines of the run's log."""

from __future__ import annotations

import json
import re
from typing import Any

from analysis.runs.services import LogLine
from engine.phase_facts import event_line
from engine.text.units import sentence_case

EVENTS = (
    *("started", "phase", "stage", "device", "probe_started", "progress", "probe", "timing"),
    *("estimate", "log", "result", "error"),
)
_SHOWN_OF_GARBAGE = 200


def parse_event(line: bytes) -> dict[str, Any] | None:
    """Read an event from a line; None for another line. NaN is refused: PostgreSQL's JSON has no NaN."""
    try:
        event = json.loads(line.replace(b"\\u0000", b""), parse_constant=_refuse)
        json.dumps(event, ensure_ascii=False).encode()  # a lone surrogate cannot be stored
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and event.get("event") in EVENTS else None


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
