"""PURE: the form of the events whose content is stored and shown: checked before anything of one is used.

An event comes from the engine of this portal, from one of another version, or from any program that reports a run.
Members that nothing here knows are passed over: they are not stored either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import convert

from analysis.runs.queue.stored_progress import Count, Seconds, Size
from engine.answers import impossible_estimate, impossible_facts
from engine.estimate.types import Estimate
from engine.results.result import DeviceFacts
from engine.text.printable import printable


@dataclass(frozen=True, slots=True)
class _Phase:
    phase: str  # an unknown one is ignored
    seconds: Seconds | None = None
    cards: Count | None = None


@dataclass(frozen=True, slots=True)
class _Device:
    device: DeviceFacts
    environment: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _ProbeStarted:
    batch_size: Size


@dataclass(frozen=True, slots=True)
class _ProgressEvent:
    batch_size: Size | None = None
    step: Count | None = None


@dataclass(frozen=True, slots=True)
class _Timing:
    round: Size
    batch_sizes: tuple[Size, ...] = ()
    seconds_left_at_most: Seconds | None = None
    rounds_expected: Count | None = None
    seconds_left: Seconds | None = None


_FORMS: dict[str, Any] = {
    "phase": _Phase,
    "probe_started": _ProbeStarted,
    "progress": _ProgressEvent,
    "timing": _Timing,
}


def check_event(event: Mapping[str, Any]) -> None:
    """Raise ValueError for an event of a known name whose content is not of its form; it names the member."""
    name = event["event"]
    if name == "estimate":
        check_estimate(event.get("estimate"))
    elif name == "device":
        check_device(convert(event, _Device).device)
    elif name in _FORMS:
        convert(event, _FORMS[name])


def check_device(facts: DeviceFacts) -> None:
    """Raise ValueError for a device that cannot be, by the rule for result documents."""
    for wrong in impossible_facts(facts):
        raise ValueError(f"{wrong.field}: must be {wrong.allowed}, got {printable(repr(wrong.claimed))}")


def check_estimate(stored: object) -> None:
    """Raise ValueError for an estimate that no page could show."""
    for wrong in impossible_estimate(convert(stored, Estimate)):
        raise ValueError(f"{wrong.field}: must be {wrong.allowed}, got {wrong.claimed}")
