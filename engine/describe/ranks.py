"""PURE: the ranks of a training in words: how sure their figures are, what each held, and the batch of all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..estimate.types import Estimate
from ..facts.figure_kinds import EMULATED
from ..facts.result import Outcome, Purpose, RunResult
from ..settings.rank_settings import DDP, FSDP, ZERO1
from ..settings.ranks.emulation import NCCL_SOURCE, emulated_ranks
from ..settings.spec import SETTINGS, trained_settings
from ..text.units import format_bytes, format_percent

NOT_SEEN = "Not seen: when streams run, fragmentation over hours, pinned memory of offload."
_LEAST_SHOWN = 0.0005
SHARDED = {
    DDP: "nothing: each GPU holds all weights, gradients and optimizer state, and the gradients again in DDP's buckets",
    FSDP: "weights, gradients and optimizer state; a layer's weights are gathered while it runs",
    ZERO1: "the optimizer's state; each GPU holds all weights, and the gradients again in DDP's buckets",
}
"""What the GPUs share, by strategy."""
HOW_COMPARED = "typically 3.7 %, at worst 12.8 % in 14 published figures; within 0.024 % of emulated ranks"
"""How far estimates of several GPUs are off: benchmarks/published_ranks.py, and estimated_ranks.py in 60 cases."""


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


def ranks_rows(estimate: Estimate) -> list[tuple[str, str]]:
    spec = estimate.spec
    if spec.ranks == 1:
        return []
    return [
        ("GPUs", f"{spec.ranks}, one rank on each; every figure is rank 0's"),
        ("Sharded", SHARDED.get(spec.strategy, spec.strategy)),
        ("Communication library", describe_communication(estimate)),
    ]


def describe_global(estimate: Estimate, size: int) -> str:
    """Write "3,904: 488 on each of 8 GPUs", with the micro-batches of a step where there are several."""
    return describe_group(size, estimate.spec.ranks, estimate.spec.accumulation_steps, "GPUs")


def describe_communication(estimate: Estimate) -> str:
    """Write "688.0 MiB on each GPU, outside the allocator", and whose figure that is."""
    size = f"{format_bytes(estimate.communication_bytes)} on each GPU, outside PyTorch's allocator"
    if estimate.spec.communication_bytes is not None:
        return f"{size}, as given"
    other = "" if "A100" in estimate.gpu.name else ", not on this GPU"
    return (
        f"{size}, as read on another host ({NCCL_SOURCE}){other}; {SETTINGS['communication_bytes'].option} changes it"
    )
