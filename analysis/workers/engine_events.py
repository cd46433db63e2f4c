"""PURE: the engine's output lines -> events, and events -> lines of the run's log."""

from __future__ import annotations

import json
import re
from typing import Any

from analysis.runs.services import LogLine
from engine.progress import PHASE_LABELS
from engine.result import Outcome, Probe
from engine.units import format_bytes

EVENTS = (
    *("started", "phase", "stage", "device", "probe_started", "progress", "probe", "timing"),
    *("estimate", "log", "result", "error"),
)
_ROUNDS_A_LINE = 5
"""A round of timing takes a second or two: a line for each would make the rest of the log hard to find."""
_SHOWN_OF_GARBAGE = 200


def parse_event(line: bytes) -> dict[str, Any] | None:
    """Read an event from a line; None when the line is not an event. NaN is refused: PostgreSQL's JSON has none."""
    try:
        event = json.loads(line.replace(b"\\u0000", b""), parse_constant=_refuse)
        json.dumps(event, ensure_ascii=False).encode()  # a lone surrogate cannot be stored
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and event.get("event") in EVENTS else None


def garbage_event(line: bytes) -> dict[str, Any]:
    """Return a log event that reports a line that is not an event."""
    shown = line[:_SHOWN_OF_GARBAGE].decode(errors="replace").strip()
    return {"event": "log", "level": "warning", "message": f"Skipped a line that is not an event: {shown}"}


def is_result(line: bytes) -> bool:
    """Whether this beginning of a line that was too long is the beginning of a result."""
    return re.match(rb'\s*\{\s*"event"\s*:\s*"result"', line) is not None


def log_line(event: dict[str, Any]) -> LogLine | None:
    """Return the log line for an event; None where it would add nothing."""
    match event:
        case {"event": "log", "message": message}:
            return LogLine("warning" if event.get("level") == "warning" else "info", str(message))
        case {"event": "phase", "phase": phase}:
            return LogLine("info", PHASE_LABELS.get(str(phase), str(phase)).capitalize())
        case {"event": "stage", "stage": stage}:
            return LogLine("info", f"{str(stage)[:1].upper()}{str(stage)[1:200]}")
        case {"event": "device", "device": {"name": name, "capacity_bytes": int(capacity)}}:
            return LogLine("info", f"Device: {name}, {format_bytes(capacity)}")
        case {"event": "probe", "probe": dict(probe)}:
            return LogLine("info", describe_probe(Probe.from_dict(probe)))
        case {"event": "timing", "round": int(number), "batch_sizes": list(sizes)} if number % _ROUNDS_A_LINE == 1:
            return LogLine("info", _describe_round(number, sizes, event.get("seconds_left_at_most")))
        case {"event": "estimate", "estimate": dict(estimate)}:
            return LogLine("info", describe_estimate(estimate))
        case {"event": "error", "error": {"message": message}}:
            return LogLine("error", str(message))
    return None


def progress_after(progress: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    """Return the progress of an attempt after this event: see `analysis.runs.progress.progress_set`."""
    lasting: dict[str, Any] = {name: progress[name] for name in ("phases", "cards", "cards_done") if name in progress}
    match event:
        case {"event": "phase", "phase": phase}:
            lasting["phases"] = {**progress.get("phases", {}), str(phase): event.get("seconds")}
            if isinstance(cards := event.get("cards"), int):
                lasting |= {"cards": cards, "cards_done": 0}
            return lasting
        case {"event": "stage", "stage": stage}:  # of a new process: it belongs to the probe or the round that begins
            return {**progress, "stage": str(stage)[:200]}
        case {"event": "probe_started", "batch_size": int(size)}:
            return lasting | {"batch_size": size}
        case {"event": "progress", "purpose": "timing"}:  # a round says more than the step of a block
            return progress
        case {"event": "progress", "batch_size": int(size), "step": int(step)}:
            return lasting | {"batch_size": size, "step": step}
        case {"event": "timing", "round": int(number)}:
            # before a round has ended the engine does not know how long one takes
            left = event.get("seconds_left_at_most") if number > 1 else None
            return lasting | {"round": number, "timing_seconds_left": left}
        case {"event": "estimate"} if "cards" in progress:
            return lasting | {"cards_done": progress["cards_done"] + 1}
    return progress


def describe_probe(probe: Probe) -> str:
    """Write `batch 16 fits: 1.7 GiB, 9.8 samples/s`."""
    start = f"batch {probe.batch_size}"
    if probe.outcome is Outcome.FITS:
        figures = ", ".join(_figures(probe))
        return f"{start} fits: {figures}" if figures else f"{start} fits"
    outcome = str(probe.outcome).replace("_", " ")
    reason = (probe.error_message or "").removeprefix(f"{outcome}: ").strip().splitlines()
    return f"{start}: {outcome} ({reason[0][:300]})" if reason else f"{start}: {outcome}"


def _describe_round(number: int, batch_sizes: list[Any], seconds_left: float | None) -> str:
    """Write `comparing speed, round 6: 16, 32 and 64 in turns, 41 s left at most`."""
    *others, last = map(str, batch_sizes)
    sizes = f"{', '.join(others)} and {last} in turns" if others else f"{last} alone"
    left = "" if seconds_left is None else f", {seconds_left:.0f} s left at most"
    return f"comparing speed, round {number}: {sizes}{left}"


def describe_estimate(estimate: dict[str, Any]) -> str:
    """Write `estimated for NVIDIA A100 40GB: up to 508, safe 480`."""
    where = estimate["gpu"]["name"] if estimate.get("gpu") else "this device"
    largest, safe = estimate.get("largest_batch_size"), estimate.get("safe_batch_size")
    return f"estimated for {where}: " + (f"up to {largest}, safe {safe or 'none'}" if largest else "no size fits")


def _figures(probe: Probe) -> list[str]:
    figures = []
    if probe.memory_bytes is not None:
        figures.append(format_bytes(probe.memory_bytes))
    if probe.samples_per_second is not None:
        figures.append(f"{probe.samples_per_second:.1f} samples/s")
    if probe.steps:
        figures.append(f"{probe.steps} steps")
    return figures


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
