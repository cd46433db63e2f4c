"""PURE: an estimate in words: how far the training would reach, how that is known, and how far it may be off."""

from __future__ import annotations

from ..estimate.gpus import gpus
from ..estimate.types import OR_MORE, Estimate, KnownError
from ..settings.step_settings import AMPERE, EMULATED_BEFORE_AMPERE
from ..text.units import format_percent
from .ranks import HOW_COMPARED

METHODS = {
    "fake_cuda": "Three training steps traced on tensors without data, with the GPU's own kernels, replayed in a "
    "model of PyTorch's allocator",
    "fake_cpu": "Three training steps traced on tensors without data, with the CPU's own kernels",
    "approximate_fake_cpu": "Approximate: traced with the CPU's kernels; a GPU's own may take several percent more or "
    "less",
}


_KERNELS = {"flash": "flash", "efficient": "memory-efficient", "cudnn": "cuDNN"}


def describe_estimate(estimate: Estimate) -> str:
    """Write "largest batch 512; 488 with the margin of 0.8 %", and why it is only approximate."""
    if not estimate.largest_batch_size:
        return "not even batch 1 fits"
    because, ranks = estimate.approximate_because, estimate.spec.ranks
    each = f" on each of {ranks}" if ranks > 1 else ""
    sizes = (estimate.largest_batch_size, estimate.safe_batch_size)
    largest, safe = (estimate.size_text(size, OR_MORE) for size in sizes)
    approximate = f" (approximate, because {because})" if because else ""
    margin = format_percent(estimate.margin_fraction)
    return f"largest batch {largest}{each}; {safe} with the margin of {margin}{approximate}"


def describe_for_card(estimate: Estimate) -> str:
    """Write "estimated for NVIDIA A100 40GB: largest batch 512; 488 with the margin of 0.8 %"."""
    return f"estimated for {estimate.place}: {describe_estimate(estimate)}"


def describe_attention(estimate: Estimate) -> str:
    """Write "flash and memory-efficient; from 512 tokens on ...": at which length the kernels change, and why."""
    kernels = " and ".join(_KERNELS.get(name, name) for name in estimate.attention_kernels)
    if not kernels or estimate.window_tokens is None:
        return kernels
    mask = "have a mask of tokens x tokens, which flash attention does not take"
    return f"{kernels}; from {estimate.window_tokens:,} tokens on, layers with a sliding window {mask}"


def describe_emulation(estimate: Estimate) -> str:
    """Say where bf16 is not the card's own; empty elsewhere."""
    card = gpus().get(estimate.gpu.id)
    capability = None if card is None else card.compute_capability
    if capability is None or capability >= AMPERE or estimate.spec.precision not in EMULATED_BEFORE_AMPERE:
        return ""
    return f"torch emulates bf16 on {estimate.gpu.name}, without fused attention: fp16 is faster there"


def describe_known_error(error: KnownError | None, ranks: int = 1) -> str:
    """Write "typically 1.3 %, at worst 7.9 % in 10 comparisons"; of what, is in the document."""
    if ranks > 1:
        return HOW_COMPARED
    if error is None:
        return "not known for this model: measure it"
    typical, worst = format_percent(error.typical_fraction), format_percent(error.worst_fraction)
    return f"typically {typical}, at worst {worst} in {error.runs} comparisons"


def describe_margin(margin_fraction: float) -> str:
    """Write "8.0 %: the size with the margin still fits if it needs this much more memory"."""
    return f"{format_percent(margin_fraction)}: the size with the margin still fits if it needs this much more memory"
