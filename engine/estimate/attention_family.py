"""PURE: which cards take the same kernels of attention: they share a trace."""

from __future__ import annotations

from typing import Literal

from .gpus import Gpu

Family = Literal["before_sm80", "sm80", "cudnn_first"]
FAMILIES: tuple[Family, ...] = ("before_sm80", "sm80", "cudnn_first")
_CUDNN_FIRST = (9, 10)  # major compute capabilities: H100, H200, B200


def family_of(gpu: Gpu, precision: str) -> Family:
    """Return the card's family: cards of one family choose the same kernels. In full precision there is only one."""
    capability = gpu.compute_capability
    if precision in ("fp32", "tf32") or capability is None:
        return "sm80"
    if capability < (8, 0):
        return "before_sm80"
    return "cudnn_first" if capability[0] in _CUDNN_FIRST else "sm80"
