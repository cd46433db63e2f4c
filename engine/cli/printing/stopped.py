"""Writes the answer of a stopped run, from the probes or GPUs so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...facts.result import Outcome, Probe, Purpose

STORED = "Stored by then"
ANSWERED = "The answer above stands."
_ENDED = {Outcome.OUT_OF_MEMORY: "ran out of memory", Outcome.SIZE_LIMIT: "met a size limit", Outcome.ERROR: "failed"}


def known_so_far(probes: Sequence[Probe], progress: Mapping[str, Any]) -> str:
    """Write "22 trained, 64 ran out of memory; nothing between was tried."; empty where nothing is known."""
    if cards := progress.get("cards"):
        return f"{progress['cards_done']} of {cards} GPU{'' if cards == 1 else 's'} {_was(cards)} estimated."
    memory = [probe for probe in probes if probe.purpose is not Purpose.TIMING]
    largest = max((probe.batch_size for probe in memory if probe.fits), default=0)
    above = [probe for probe in memory if not probe.fits and probe.batch_size > largest]
    over = min(above, key=lambda probe: probe.batch_size, default=None)
    tried = progress.get("batch_size")
    is_tried = tried is not None and tried not in {probe.batch_size for probe in memory}
    trying = f"; {tried:,} was being tried" if is_tried else ""
    if over is None:
        return f"{largest:,} trained{trying or '; nothing larger was tried'}." if largest else ""
    refused = f"{over.batch_size:,} {_ENDED[over.outcome]}"
    if not largest:
        return f"{refused}{trying or '; nothing smaller trained'}."
    is_next = over.batch_size == largest + 1
    return f"{largest:,} trained, {refused}{'' if is_next else trying or '; nothing between was tried'}."


def stored_by_then(paths: Sequence[Path]) -> str:
    """Write "Stored by then: memorymark-runs/ab12.json."."""
    return f"{STORED}: {', '.join(dict.fromkeys(map(str, paths)))}."


def describe_stop(notes: Sequence[str]) -> str:
    stored = [note for note in notes if note.startswith(STORED)]
    if not stored and ANSWERED not in notes:
        stored = ["No result is stored."]
    return " ".join(["Stopped.", *(note for note in notes if note and note not in stored), *stored])


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
