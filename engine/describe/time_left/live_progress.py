"""PURE: what a run does now, as a fold over its events: small, and JSON, so that a portal can store it.

    phase                   the phase that began last
    phases                  seconds at which each phase began
    since                   seconds at which the current phase or probe began, or the last probe ended
    batch_size, step        those of the current probe
    stage                   what takes a while before the first probe
    import_seconds          seconds that loading the libraries took, if an event of a stage shows it
    expected                the largest size of the estimate that precedes a search
    device_kind             kind of the device
    round, rounds_expected, timing_seconds_left     comparison of speeds; null before its first round has ended
    cards_wanted, cards, cards_done     estimate
    turn                    number and count of the other settings or sizes that are estimated, and when the first began
    measured                seconds at which a validation began to measure each sort of step

Events may come from other machines: a value of a wrong type is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...facts.progress import PHASE_LABELS

LASTING = (
    "phase",
    "phases",
    "import_seconds",
    "turn",
    "expected",
    "device_kind",
    "cards_wanted",
    "cards",
    "cards_done",
    "measured",
)
LONGEST_SECONDS = 1e7  # a larger figure cannot be the time of a run
_MOST_CARDS, _MOST_SAMPLES = 10_000, 2**31
_STAGE_LENGTH = 200
_IMPORTING = "importing "
_TURN = re.compile(r"(?:change|size|value) (\d{1,5}) of (?:about )?(\d{1,5}):", re.ASCII)
_MOST_MEASURED = 4

Progress = dict[str, Any]


def progress_after(progress: Mapping[str, Any], event: Mapping[str, Any]) -> Progress:
    lasting: Progress = {name: progress[name] for name in LASTING if name in progress}
    at = seconds_of(event)
    match event:
        case {"event": "started"}:
            wanted = event.get("gpus")
            return {"cards_wanted": min(len(wanted), _MOST_CARDS)} if isinstance(wanted, list) else {}
        case {"event": "phase", "phase": str(name)}:
            if name in PHASE_LABELS:  # another machine may send any name
                lasting |= {"phase": name, "phases": {**progress.get("phases", {}), name: at}, "since": at}
            if isinstance(cards := event.get("cards"), int):
                lasting |= {"cards": min(cards, _MOST_CARDS), "cards_done": 0}
            return lasting
        case {"event": "stage", "stage": stage}:  # a new process starts for the probe or the round that begins
            found = {**_imported(progress, at), **_turn(progress, str(stage), at)}
            return {**progress, **found, "stage": str(stage)[:_STAGE_LENGTH], "stage_since": at}
        case {"event": "device", "device": {"kind": str(kind)}}:
            return {**progress, "device_kind": kind[:20]}
        case {"event": "probe_started", "batch_size": int(size)}:
            return lasting | {"batch_size": size, "since": at}
        case {"event": "probe"}:
            return {**progress, "since": at}
        case {"event": "progress", "purpose": "timing"}:  # the round is shown, not the step of a block
            return dict(progress)
        case {"event": "progress", "batch_size": int(size), "step": int(step)}:
            since = float(progress.get("since") or 0.0)
            return lasting | _measured(progress, event, at) | {"batch_size": size, "step": step, "since": since}
        case {"event": "timing", "round": int(number)}:
            return lasting | {"round": number, "since": at, **_outlook(event, number)}
        case {"event": "estimate"} if "cards" in progress:
            return lasting | {"cards_done": progress["cards_done"] + 1}
        case {"event": "estimate", "estimate": {"largest_batch_size": int(size)}} if 0 < size < _MOST_SAMPLES:
            return {**progress, "expected": size}
    return dict(progress)


def seconds_of(event: Mapping[str, Any]) -> float:
    """Return the seconds at which an event happened, from the run's start; 0 where it does not say."""
    return _time(event.get("seconds")) or 0.0


def _time(seconds: object) -> float | None:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return float(seconds) if is_number and 0 <= seconds <= LONGEST_SECONDS else None  # type: ignore[arg-type,operator]


def _imported(progress: Mapping[str, Any], at: float) -> Progress:
    is_import = str(progress.get("stage", "")).startswith(_IMPORTING) and "import_seconds" not in progress
    return {"import_seconds": max(at - float(progress.get("stage_since") or 0.0), 0.0)} if is_import else {}


def _turn(progress: Mapping[str, Any], stage: str, at: float) -> Progress:
    """Read ``change 3 of 12: precision bf16`` or ``size 2 of 5: 256``, the stages of an estimate of several."""
    if (found := _TURN.match(stage)) is None:
        return {}
    number, count = (min(int(text), _MOST_CARDS) for text in found.groups())
    return {"turn": [number, count, at if number == 1 else progress.get("turn", (1, 1, at))[2]]}


def _measured(progress: Mapping[str, Any], event: Mapping[str, Any], at: float) -> Progress:
    if event.get("purpose") != "memory" or event["step"] != 1:
        return {}
    return {"measured": [*progress.get("measured", ()), at][-_MOST_MEASURED:]}


def _outlook(event: Mapping[str, Any], number: int) -> Progress:
    """Return the engine's outlook on its comparison of speeds: before the first round ends, it has no time."""
    expected = event.get("rounds_expected")
    return {
        "timing_seconds_left": _time(event.get("seconds_left")) if number > 1 else None,
        "rounds_expected": expected if isinstance(expected, int) else None,
    }
