"""PURE: what an estimate for several GPUs says beside its figures: whose they are, and what the GPUs share."""

from __future__ import annotations

from ..estimate.types import Estimate
from ..ranks.emulation import NCCL_SOURCE
from ..settings.rank_settings import DDP, FSDP, ZERO1
from ..spec import SETTINGS
from ..text.units import format_bytes
from .rank_peaks import describe_group

SHARDED = {
    DDP: "nothing: each GPU holds all weights, gradients and optimizer state, and the gradients again in DDP's buckets",
    FSDP: "weights, gradients and optimizer state; a layer's weights are gathered while it runs",
    ZERO1: "the optimizer's state; each GPU holds all weights, and the gradients again in DDP's buckets",
}
"""What the GPUs share, by strategy."""
HOW_COMPARED = "typically 3.7 %, at worst 12.8 % in 14 published figures; within 0.024 % of emulated ranks"
"""How far estimates of several GPUs are off: benchmarks/published_ranks.py, and estimated_ranks.py in 60 cases."""


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
