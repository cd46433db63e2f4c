"""Stores the linear layers of a frozen model in 4 bits (QLoRA) or 8 (LLM.int8). Needs torch and bitsandbytes.

It is imported where a model is built, never before a process forks: bitsandbytes looks for a card when it is imported.
Layers are quantised one at a time on the device, so that neither it nor the host holds all of them unquantised.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from typing import Any
from unittest.mock import patch

import torch
from bitsandbytes import functional, supported_torch_devices
from bitsandbytes.nn.modules import Int8Params, Linear4bit, Linear8bitLt
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D
from transformers.quantizers.base import HfQuantizer
from transformers.quantizers.quantizers_utils import should_convert_module

from ..errors import SpecError
from ..settings.lora_options import OUTLIER_THRESHOLD, TRAINED_HEADS, FourBits

_WEIGHTS_DEVIATION = 0.02


@contextmanager
def linear_layers_without_weights() -> Iterator[None]:
    with patch.object(nn.Linear, "__init__", partialmethod(nn.Linear.__init__, device="meta")):
        yield


def quantize(model: Any, how: FourBits | None, device: torch.device, setting: str) -> None:
    """Replace the linear layers of a model of transformers by 4-bit ones on `device`; without `how` by 8-bit ones.

    Layers that transformers does not quantise are left out, above all the output layer unless requested, and so is the
    trained head. Raises SpecError where bitsandbytes does not run on the device, no layer is left to quantise, or the
    output layer has no weights of its own.
    """
    if device.type not in supported_torch_devices:
        allowed = ", ".join(sorted(supported_torch_devices))
        raise SpecError(setting, f"bitsandbytes does not run on {device.type}; it takes {allowed}")
    left_out = HfQuantizer.get_modules_to_not_convert(
        model, TRAINED_HEADS, model._keep_in_fp32_modules, add_default_skips=not (how and how.with_output_layer)
    )
    if how and how.with_output_layer and model.config.tie_word_embeddings:
        reason = "shares its weights with the embeddings, which stay as they are; leave it out"
        raise SpecError("four_bit_output_layer", f"the output layer of {type(model).__name__} {reason}")
    dtype = getattr(torch, how.compute_dtype) if how else torch.get_default_dtype()
    layers = [(path, module) for path, module in model.named_modules() if isinstance(module, nn.Linear | Conv1D)]
    chosen = [path for path, module in layers if type(module) in (nn.Linear, Conv1D)]
    chosen = [path for path in chosen if should_convert_module(path, left_out)]
    if not chosen:
        raise SpecError(setting, f"{type(model).__name__} has no linear layers to quantise but its head")
    for path, module in layers:
        if path in chosen:
            weight = _filled(module.weight, dtype, device)
            bias = None if module.bias is None else _filled(module.bias, dtype, device)
            # GPT-2's Conv1D is a linear layer with a transposed weight
            weight = weight.T.contiguous() if isinstance(module, Conv1D) else weight
            model.set_submodule(path, FourBitLinear(weight, bias, how) if how else eight_bit_linear(weight, bias))
            continue
        for name, parameter in list(module.named_parameters(recurse=False)):
            if parameter.device.type == "meta":  # made without weights, and not quantised
                setattr(module, name, nn.Parameter(_filled(parameter, parameter.dtype, device)))
    setattr(model, f"is_{setting.replace('load', 'loaded')}", True)  # peft checks this


class FourBitLinear(Linear4bit):
    """A 4-bit layer as from_pretrained leaves it; its constants are buffers, and so count among the tensors.

    The library's own constructor and parameter class reject tensors without data.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, how: FourBits) -> None:
        """Quantise `weight`. Its dtype is that of the layer's computations."""
        nn.Module.__init__(self)
        self.out_features, self.in_features = weight.shape
        packed, state = functional.quantize_4bit(weight, compress_statistics=how.is_double, quant_type=how.quant_type)
        stored: Any = nn.Parameter(packed, requires_grad=False)
        stored.quant_state, stored.quant_type = state, how.quant_type
        stored.compress_statistics = how.is_double
        self.weight = stored
        self.register_parameter("bias", None if bias is None else nn.Parameter(bias, requires_grad=False))
        self.quant_state, self.quant_storage = state, packed.dtype
        self.compute_dtype, self.compute_type_is_set = weight.dtype, True
        self.support_avx512bf16_for_cpu = False  # otherwise some CPUs repack the weights for inference
        constants = {"absmax": state.absmax, "code": state.code}
        if how.is_double:
            nested = {"nested_absmax": state.state2.absmax, "nested_code": state.state2.code}
            constants |= {"offset": state.offset, **nested}
        for name, tensor in constants.items():
            self.register_buffer(name, tensor, persistent=False)

    @property
    def W_q(self) -> Tensor:
        """Return the weight. A layer with this name dequantises itself, to peft."""
        return self.weight

    def dequantize(self) -> Tensor:
        """Return the whole weight, whose norm DoRA needs in each step, as peft makes it of the library's own layer."""
        return functional.dequantize_4bit(self.weight.data, self.quant_state)


def eight_bit_linear(weight: Tensor, bias: Tensor | None) -> Linear8bitLt:
    """Make a layer of bitsandbytes with weights of 8 bits, as from_pretrained leaves it on a device."""
    rows, columns = weight.shape
    layer = Linear8bitLt(
        columns, rows, bias is not None, has_fp16_weights=False, threshold=OUTLIER_THRESHOLD, device="meta"
    )
    # it is quantised on its way from the host to the device
    stored: Any = Int8Params(weight.cpu().half(), requires_grad=False, has_fp16_weights=False)
    layer.weight = stored.to(weight.device)
    if bias is not None:
        layer.bias = nn.Parameter(bias, requires_grad=False)
    return layer


def _filled(tensor: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
    if tensor.device.type == "meta":
        return torch.empty(tensor.shape, dtype=dtype, device=device).normal_(std=_WEIGHTS_DEVIATION)
    return tensor.detach().to(device, dtype)
