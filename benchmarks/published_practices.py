"""What authors of published trainings did that no setting says yet: patched in while such a training is traced.

A practice leaves this file when the engine has a setting for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from engine.measurement import language_model_loss, step
from engine.measurement.torchvision_schemas import import_torchvision


@contextmanager
def _adapters_of_the_models_type() -> Iterator[None]:
    """Leave adapters in the type of the weights, where peft makes them fp32 by default."""
    import_torchvision()  # before peft, which imports all of transformers
    peft = importlib.import_module("peft")
    get_peft_model = peft.get_peft_model

    def of_that_type(model: Any, config: Any) -> nn.Module:
        usual = torch.get_default_dtype()
        torch.set_default_dtype(model.dtype)  # a trace does not convert adapters once they are made
        try:
            made: nn.Module = get_peft_model(model, config, autocast_adapter_dtype=False)
        finally:
            torch.set_default_dtype(usual)
        return made

    with patch.object(peft, "get_peft_model", of_that_type):
        yield


@contextmanager
def _output_layer_in_4_bits() -> Iterator[None]:
    """Quantise every linear layer, as Lightning's BitsandbytesPrecision does."""
    quantization: Any = importlib.import_module("engine.measurement.quantization")
    with patch.object(quantization.HfQuantizer, "get_modules_to_not_convert", lambda *_, **__: []):
        yield


@contextmanager
def _single_quantization() -> Iterator[None]:
    """Keep the constants of 4-bit weights in fp32, one for 64 weights."""
    quantization: Any = importlib.import_module("engine.measurement.quantization")
    with patch.object(quantization, "NormalFloatLinear", partial(_singly_quantized, quantization)):
        yield


def _singly_quantized(quantization: Any, weight: Tensor, bias: Tensor | None) -> nn.Module:
    layer: nn.Module = quantization.Linear4bit.__new__(quantization.Linear4bit)
    nn.Module.__init__(layer)
    made: Any = layer
    made.out_features, made.in_features = weight.shape
    packed, state = quantization.functional.quantize_4bit(weight, compress_statistics=False, quant_type="nf4")
    stored: Any = nn.Parameter(packed, requires_grad=False)
    stored.quant_state, stored.quant_type, stored.compress_statistics = state, "nf4", False
    made.weight, made.quant_state, made.quant_storage = stored, state, packed.dtype
    layer.register_parameter("bias", None if bias is None else nn.Parameter(bias, requires_grad=False))
    made.compute_dtype, made.compute_type_is_set, made.support_avx512bf16_for_cpu = weight.dtype, True, False
    for name, tensor in {"absmax": state.absmax, "code": state.code}.items():
        layer.register_buffer(name, tensor, persistent=False)
    return layer


@contextmanager
def _4_bit_layers_keep_their_input() -> Iterator[None]:
    """Keep the input of every 4-bit layer for the backward pass, as bitsandbytes did before 0.43.2."""
    functions: Any = importlib.import_module("bitsandbytes.autograd._functions")
    forward = functions.MatMul4Bit.forward

    def keeping(ctx: Any, entered: Tensor, *others: Any, **named: Any) -> Tensor:
        result: Tensor = forward(ctx, entered, *others, **named)
        if any(ctx.needs_input_grad[:2]):
            ctx.kept = entered
        return result

    with patch.object(functions.MatMul4Bit, "forward", staticmethod(keeping)):
        yield


@contextmanager
def _logits_in_fp32() -> Iterator[None]:
    """Return fp32 copies of the logits, as Lightning's HalfPrecision.convert_output does with what a model returns."""
    output_layer = language_model_loss._output_layer

    def converting(model: Any) -> Callable[[Tensor], Tensor]:
        logits_of = output_layer(model)
        return lambda hidden: logits_of(hidden).float()

    with patch.object(language_model_loss, "_output_layer", converting):
        yield


@contextmanager
def _optimizer_without_copies() -> Iterator[None]:
    """Update one parameter at a time, as transformers' AdamW of 2022 does: no copies of all at once."""
    make_optimizer = step.make_optimizer

    def one_at_a_time(name: str, model: nn.Module) -> Any:
        made = make_optimizer(name, model)
        for group in made.param_groups if made is not None else ():
            group["foreach"] = False
        return made

    with patch.object(step, "make_optimizer", one_at_a_time):
        yield


PRACTICES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "adapters of the model's type": _adapters_of_the_models_type,
    "output layer in 4 bits": _output_layer_in_4_bits,
    "no double quantization": _single_quantization,
    "4-bit layers keep their input": _4_bit_layers_keep_their_input,
    "logits in fp32": _logits_in_fp32,
    "one parameter at a time": _optimizer_without_copies,
}


@contextmanager
def patched_in(practices: Iterable[str]) -> Iterator[None]:
    """Follow these practices while in the context."""
    with ExitStack() as stack:
        for practice in practices:
            stack.enter_context(PRACTICES[practice]())
        yield
