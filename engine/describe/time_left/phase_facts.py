"""PURE: an event as a line of a log, and a phase in a few words: what it tries now, and what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...estimate.types import Estimate
from ...facts.progress import PHASE_LABELS
from ...facts.result import Probe, Purpose
from ...settings.spec import MEMORY_STEPS
from ...text.from_json import from_json
from ...text.units import format_bytes, format_duration
from ..estimate import describe_for_card
from ..probe import describe_probe, shown_throughput
from . import describe_left, describe_number, describe_round
from .measurement import SEARCHED, SoFar, bracket
from .starts import StartUnderWay

ROUNDS_A_LINE = 5
"""Rounds of the comparison of speeds between two lines; a round takes a second or two."""


def event_line(event: Mapping[str, Any]) -> str | None:
    """Return the line for an event, which may hold any text; None where it would add nothing."""
    match event:
        case {"event": "log", "message": message}:
            return str(message)
        case {"event": "phase", "phase": phase}:
            cards = event.get("cards")
            label = PHASE_LABELS.get(str(phase), str(phase))
            return f"predicting for {cards} GPU{'' if cards == 1 else 's'}" if cards else label
        case {"event": "device", "device": {"device": place, "name": name, "limit_bytes": limit}}:
            return f"{name} ({place}){f', limit {format_bytes(limit)}' if isinstance(limit, int) else ''}"
        case {"event": "probe", "probe": dict(stored)}:
            probe = Probe.from_dict(stored)
            is_without_figure = probe.purpose is Purpose.TIMING and shown_throughput(probe) is None
            return None if is_without_figure else describe_probe(probe)  # why there is none is said once, of all sizes
        case {"event": "timing", "round": int(number)} if number % ROUNDS_A_LINE == 0:
            left = event.get("seconds_left")
            of_rounds = describe_round(number, event.get("rounds_expected"))
            return f"{of_rounds}{f', {describe_left(left)}' if isinstance(left, int | float) else ''}"
        case {"event": "estimate", "estimate": dict(estimate)}:
            return describe_for_card(from_json(Estimate, estimate))
    return None


def finding_of_phase(phase: str, known: SoFar) -> str:
    """Return what a phase found, once it is over: "92 fits, 93 does not", "92 ran 20 steps", "7 sizes"."""
    if phase == "searching":
        return searched(known.probes)
    if phase == "soaking":
        soaked = [probe for probe in known.probes if probe.purpose is Purpose.SOAK and probe.fits]
        return f"{soaked[-1].batch_size:,} ran {soaked[-1].steps} steps" if soaked else ""
    if phase == "curve":
        sizes = sum(probe.purpose is Purpose.CURVE for probe in known.probes)
        return f"{sizes} size{'' if sizes == 1 else 's'}" if sizes else ""
    return ""


def searched(probes: Sequence[Probe], trying: int | None = None) -> str:
    """Write "92 fits, 93 next", and after the search "92 fits, 93 does not"."""
    found = [probe for probe in probes if probe.purpose in SEARCHED]
    largest, over = bracket(found)
    parts = [f"{largest:,} fits"] if largest else []
    if trying is not None and trying not in {probe.batch_size for probe in found if probe.batch_size >= largest}:
        parts.append(f"{trying:,} next")
    elif over is not None:
        parts.append(f"{over:,} does not")
    return ", ".join(parts)


def what_is_tried(progress: Mapping[str, Any], known: SoFar, start: StartUnderWay | None = None) -> str:
    """Write "batch 22, step 2 of 3", "GPU 12 of 34", or of the command's `start` what `describe_start` writes."""
    phase, stage = progress.get("phase"), str(progress.get("stage") or "")
    if phase == "predicting" and progress.get("cards") and not stage:
        return f"GPU {min(progress['cards_done'] + 1, progress['cards'])} of {progress['cards']}"
    if phase == "timing" and progress.get("round"):
        return describe_round(progress["round"], progress.get("rounds_expected"))
    size = progress.get("batch_size")
    if size is None:
        return stage
    if start is not None:
        return describe_start(start, size)
    step, tried = progress.get("step"), f"batch {size:,}"
    if not step:
        return tried
    steps = known.soak_steps if phase == "soaking" else MEMORY_STEPS
    return f"{tried}, step {step}{f' of {steps}' if step <= steps else ''}"


def describe_start(start: StartUnderWay, batch_size: int) -> str:
    """Write "start 4 of about 7 with 512, 25 s each"."""
    each = "" if start.seconds_each is None else f", {format_duration(start.seconds_each)} each"
    return f"{describe_number('start', start.number, start.expected)} with {batch_size:,}{each}"
