"""Which attention kernel a card takes, and the call of that very kernel. Needs torch.

A CPU build always takes the plain decomposition, which keeps the whole matrix of attention weights. So
`scaled_dot_product_attention` is replaced, for the whole process, by a function that follows CUDA's order of choice
(aten/src/ATen/native/transformers/cuda/sdp_utils.cpp) and calls the fused operator. A TorchFunctionMode would do the
same, but breaks activation checkpointing. Known limits: ROCm's kernels are taken to be those of a recent NVIDIA card;
what a user's own settings prefer (`sdpa_kernel`) is not considered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from ..attention_family import Family

Kernel = Literal["cudnn", "flash", "efficient", "math"]

_HALF = (torch.float16, torch.bfloat16)
_FLASH_HEAD_SIZE, _CUDNN_HEAD_SIZE = 256, 128
_FLASH_MULTIPLE_OF, _BIAS_MULTIPLE_OF = 8, 16


@dataclass(frozen=True)
class _Call:
    """The arguments of one call of `scaled_dot_product_attention`."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    dropout: float
    is_causal: bool
    scale: float | None
    repeats_keys: bool

    @property
    def is_trained(self) -> bool:
        return torch.is_grad_enabled() and any(t.requires_grad for t in (self.query, self.key, self.value))

    @property
    def head_size(self) -> int:
        return self.query.shape[-1]

    @property
    def is_half(self) -> bool:
        return self.query.dtype in _HALF


def kernel_of(call: _Call, family: Family) -> Kernel:
    if call.query.dim() != 4:
        return "math"
    if family == "cudnn_first" and _cudnn_takes(call):
        return "cudnn"
    if family != "before_sm80" and call.is_half and call.mask is None and _flash_takes(call):
        return "flash"
    return "efficient" if _efficient_takes(call, family) else "math"


def _cudnn_takes(call: _Call) -> bool:
    is_shape_taken = call.head_size % 8 == 0 and max(call.head_size, call.value.shape[-1]) <= _CUDNN_HEAD_SIZE
    is_dropout_taken = (call.dropout * 16).is_integer()  # cuDNN's resolution of dropout is 1/16
    return call.is_half and is_shape_taken and is_dropout_taken and call.key.shape[-2] > 1


def _flash_takes(call: _Call) -> bool:
    is_square = call.query.shape[-2] == call.key.shape[-2]
    has_one_head_size = call.head_size == call.key.shape[-1] == call.value.shape[-1]
    return has_one_head_size and call.head_size <= _FLASH_HEAD_SIZE and (is_square or not call.is_causal)


def _efficient_takes(call: _Call, family: Family) -> bool:
    if call.query.dtype == torch.bfloat16 and family == "before_sm80":
        return False
    multiple_of = 8 if call.is_half else 4
    is_aligned = call.head_size % multiple_of == 0 and call.value.shape[-1] % multiple_of == 0
    return call.query.dtype in (torch.float32, *_HALF) and call.query.shape[-1] == call.key.shape[-1] and is_aligned


def _math(call: _Call) -> Tensor:
    done: tuple[Tensor, ...] = torch.ops.aten._scaled_dot_product_attention_math(
        call.query,
        call.key,
        call.value,
        call.mask,
        call.dropout,
        call.is_causal,
        None,
        scale=call.scale,
        enable_gqa=call.repeats_keys,
    )
    return done[0]


def _cudnn(call: _Call) -> Tensor:
    key, value = _repeated(call)
    done: tuple[Tensor, ...] = torch.ops.aten._scaled_dot_product_cudnn_attention(
        call.query,
        key,
        value,
        _bias(call),
        call.is_trained,
        call.dropout,
        call.is_causal,
        False,
        scale=call.scale,
    )
    return done[0]


def _flash(call: _Call) -> Tensor:
    size, missing = call.head_size, -call.head_size % _FLASH_MULTIPLE_OF
    tensors = [call.query, call.key, call.value]
    if missing:
        tensors = [functional.pad(t, (0, missing)) for t in tensors]
    scale = size**-0.5 if call.scale is None else call.scale
    done: tuple[Tensor, ...] = torch.ops.aten._scaled_dot_product_flash_attention(
        *tensors, call.dropout, call.is_causal, False, scale=scale
    )
    return done[0][..., :size] if missing else done[0]


def _efficient(call: _Call) -> Tensor:
    key, value = _repeated(call)
    done: tuple[Tensor, ...] = torch.ops.aten._scaled_dot_product_efficient_attention(
        call.query,
        key,
        value,
        _aligned_bias(call),
        call.is_trained,
        call.dropout,
        call.is_causal,
        scale=call.scale,
    )
    return done[0]


def _repeated(call: _Call) -> tuple[Tensor, Tensor]:
    times = call.query.shape[1] // call.key.shape[1]
    if not call.repeats_keys or times == 1:
        return call.key, call.value
    return call.key.repeat_interleave(times, 1), call.value.repeat_interleave(times, 1)


def _bias(call: _Call) -> Tensor | None:
    """Return the mask as numbers to add: a boolean mask is converted, which takes memory."""
    if call.mask is None or call.mask.dtype != torch.bool:
        return call.mask
    zero, minus_infinity = (
        torch.scalar_tensor(value, dtype=call.query.dtype, device=call.mask.device) for value in (0.0, -math.inf)
    )
    return torch.where(call.mask, zero, minus_infinity)


def _aligned_bias(call: _Call) -> Tensor | None:
    """Give the bias the shape of the attention weights; rows are padded to a multiple of 16."""
    bias = _bias(call)
    if bias is None:
        return None
    length = call.key.shape[-2]
    if length % _BIAS_MULTIPLE_OF:
        bias = functional.pad(bias, (0, _BIAS_MULTIPLE_OF - length % _BIAS_MULTIPLE_OF))[..., :length]
    return bias.expand(*call.query.shape[:3], length)


def _autocast(tensor: Tensor) -> Tensor:
    """Convert to autocast's half precision, in which attention runs under autocast."""
    device_type = tensor.device.type
    if not torch.is_autocast_enabled(device_type) or tensor.dtype not in (torch.float32, *_HALF):
        return tensor
    return tensor.to(torch.get_autocast_dtype(device_type))


@contextmanager
def as_on(family: Family, alike: set[Family] | None = None) -> Iterator[None]:
    """Make attention in every thread use this family's kernels; families that would choose otherwise leave `alike`."""
    original = functional.scaled_dot_product_attention

    def attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        query, key, value = _autocast(query), _autocast(key), _autocast(value)
        mask = None if attn_mask is None else _autocast(attn_mask)
        call = _Call(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa)
        kernel = kernel_of(call, family)
        if alike:
            alike.intersection_update([other for other in alike if kernel_of(call, other) == kernel])
        return {"math": _math, "cudnn": _cudnn, "flash": _flash, "efficient": _efficient}[kernel](call)

    functional.scaled_dot_product_attention = attention
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = original
