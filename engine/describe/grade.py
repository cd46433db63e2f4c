"""PURE: how sure the figures of a result are where one device stood in for ranks of many, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ranks.emulation import NCCL_SOURCE, emulated_ranks
from ..results.figure_kinds import EMULATED
from ..text.units import format_bytes

NOT_SEEN = "Not seen: when streams run, fragmentation over hours, pinned memory of offload."


def describe_grade(spec: Mapping[str, Any]) -> str:
    """Write "emulated, 3 of 8 ranks"; empty where the training's own ranks were measured."""
    started = _started(spec)
    return f"{EMULATED}, {len(started)} of {spec['emulate_ranks']} ranks" if started else ""


def describe_emulation(spec: Mapping[str, Any], device_kind: str) -> list[str]:
    started = _started(spec)
    if not started:
        return []
    *others, last = (str(each.rank) for each in started)
    which = f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"
    stood_in = f"Emulated: one device stood in for {which} of {started[0].size}, one after the other"
    if device_kind == "cpu":
        return [f"{stood_in}. {NOT_SEEN}"]
    held = started[0].communication_bytes
    source = "as given" if spec.get("communication_bytes") is not None else NCCL_SOURCE
    return [f"{stood_in}; {format_bytes(held)} are kept free for NCCL ({source}). {NOT_SEEN}"]


def rank_rows(spec: Mapping[str, Any], peaks_bytes: Sequence[int]) -> list[tuple[int, int]]:
    """Return each rank whose memory was read, with its peak in bytes."""
    started = _started(spec)
    ranks = [each.rank for each in started] if len(started) == len(peaks_bytes) else range(len(peaks_bytes))
    return list(zip(ranks, peaks_bytes, strict=True))


def _started(spec: Mapping[str, Any]) -> Any:
    return emulated_ranks(spec.get("emulate_ranks"), spec.get("rank"), spec.get("communication_bytes"))
