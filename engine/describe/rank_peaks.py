"""PURE: the ranks of a training side by side: what each held, how unequal they are, and the batch of all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..results.result import Outcome, Purpose, RunResult
from ..spec import trained_settings
from ..text.units import format_bytes, format_percent
from .grade import rank_rows

_LEAST_SHOWN = 0.0005


@dataclass(frozen=True, slots=True)
class RankPeak:
    """What a rank held at most with the largest size, and how much more than the rank that held the least."""

    rank: int
    peak_bytes: int
    more_bytes: int


def rank_peaks(spec: Mapping[str, Any], peaks_bytes: Sequence[int]) -> list[RankPeak]:
    """Return the ranks whose memory was read, in their order; none where there is one."""
    if len(peaks_bytes) < 2:
        return []
    least = min(peaks_bytes)
    return [RankPeak(rank, peak, peak - least) for rank, peak in rank_rows(spec, peaks_bytes)]


def describe_imbalance(ranks: Sequence[RankPeak]) -> str:
    """Write "rank 1 held 1.0 KiB more than rank 0, 11.1 %"; empty where there is one rank."""
    if not ranks:
        return ""
    most, least = max(ranks, key=lambda each: each.peak_bytes), min(ranks, key=lambda each: each.peak_bytes)
    if most.more_bytes == 0:
        return "all held the same"
    share = _share(most.more_bytes, least.peak_bytes)
    return f"rank {most.rank} held {format_bytes(most.more_bytes)} more than rank {least.rank}{share}"


def describe_spread(result: RunResult) -> str:
    """Write "3 starts of 100 differed by 400 B, 4.2 %"; empty where the largest size was started once."""
    size = result.boundary.largest_batch_size
    made = [p for p in result.probes if p.batch_size == size and p.outcome is Outcome.FITS]
    peaks = [p.memory_bytes for p in made if p.memory_bytes is not None and p.purpose is not Purpose.TIMING]
    if len(peaks) < 2:
        return ""
    least, most = min(peaks), max(peaks)
    if least == most:
        return f"{len(peaks)} starts of {size:,} took the same"
    return f"{len(peaks)} starts of {size:,} differed by {format_bytes(most - least)}{_share(most - least, least)}"


def _share(more_bytes: int, of_bytes: int) -> str:
    """Write ", 4.2 %"; empty where it would be written as none."""
    return f", {format_percent(more_bytes / of_bytes)}" if of_bytes and more_bytes / of_bytes >= _LEAST_SHOWN else ""


def describe_group(size: int, ranks: int, micro_batches: int = 1, each: str = "ranks") -> str:
    """Write "3,904: 488 on each of 8 ranks", with the micro-batches of a step where there are several."""
    times = f", {micro_batches} micro-batches each" if micro_batches > 1 else ""
    return f"{size * ranks * micro_batches:,}: {size:,} on each of {ranks} {each}{times}"


def describe_group_of(spec: Mapping[str, Any], size: int) -> str:
    """Write the global batch of a model of the catalogue on several ranks; empty for what is not known to be one."""
    if not spec.get("catalogue"):
        return ""
    trained = trained_settings(spec)
    return describe_group(size, trained["ranks"], trained["accumulation_steps"])
