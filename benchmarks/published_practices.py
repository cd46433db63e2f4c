"""What authors of published trainings did that no setting says yet: patched in while such a training is traced.

A practice leaves this file when the engine has a setting for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from engine.estimate.tracing import ranks
from engine.measurement import language_model_loss, step


@contextmanager
def _4_bit_layers_keep_their_input() -> Iterator[None]:
    """Run 4-bit layers as bitsandbytes did before 0.43.2 (`MatMul4Bit.forward`).

    Their input is kept for the backward pass, and weights are dequantised into the type that they were quantised from.
    """
    functions: Any = importlib.import_module("bitsandbytes.autograd._functions")
    dequantize = importlib.import_module("bitsandbytes.functional").dequantize_4bit

    def forward(ctx: Any, entered: Tensor, packed: Tensor, _: Any, bias: Any, quant_state: Any) -> Tensor:
        packed, ctx.is_empty, ctx.state = packed.view(-1, 1), False, quant_state
        result = nn.functional.linear(entered, dequantize(packed, quant_state).to(entered.dtype), bias)
        ctx.dtype_A, ctx.dtype_B, ctx.dtype_bias = entered.dtype, packed.dtype, None if bias is None else bias.dtype
        ctx.tensors = (None, packed)
        if any(ctx.needs_input_grad[:2]):
            ctx.kept = entered
        return result

    with patch.object(functions.MatMul4Bit, "forward", staticmethod(forward)):
        yield


@contextmanager
def _4_bits_from_fp16() -> Iterator[None]:
    """Quantise weights in fp16, as Lightning's BitsandbytesPrecision does: they are dequantised into fp16, then copied.

    Two whole copies of a weight are live at a time, where the layer computes in bf16.
    """
    layer = importlib.import_module("engine.measurement.quantization").FourBitLinear
    make = layer.__init__

    def from_fp16(self: Any, *given: Any) -> None:
        make(self, *given)
        self.quant_state.dtype = torch.float16

    with patch.object(layer, "__init__", from_fp16):
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

    def one_at_a_time(name: str, model: Any) -> Any:
        made = make_optimizer(name, model)
        for group in made.param_groups if made is not None else ():
            group["foreach"] = False
        return made

    with patch.object(step, "make_optimizer", one_at_a_time), patch.object(ranks, "make_optimizer", one_at_a_time):
        yield


class _SoftmaxThatKeepsItsInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, dim: int) -> Tensor:
        result = torch.softmax(scores, dim)
        ctx.save_for_backward(scores, result)
        ctx.dim = dim
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        scores, result = ctx.saved_tensors
        return torch._softmax_backward_data(gradients[0], result, ctx.dim, scores.dtype), None


@contextmanager
def _softmax_keeps_its_input() -> Iterator[None]:
    """Keep the input of each softmax for the backward pass, as torch did before 1.11.

    Its `_softmax_backward_data` took the input, only to read its type: see `is_torch_less_than_1_11` in transformers'
    `pytorch_utils.softmax_backward_data`. Under autocast the input is an fp32 copy.
    """

    def softmax(scores: Tensor, dim: int = -1, **_: Any) -> Tensor:
        scores = scores.float() if torch.is_autocast_enabled("cuda") else scores
        result: Tensor = _SoftmaxThatKeepsItsInput.apply(scores, dim)  # type: ignore[no-untyped-call]
        return result

    with patch.object(nn.functional, "softmax", softmax):
        yield


@contextmanager
def _adam_copies_its_denominators() -> Iterator[None]:
    """Make a copy of all of Adam's denominators, as torch before 2.2 does (`_multi_tensor_adam`): one more of weights.

    `denom = torch._foreach_add(exp_avg_sq_sqrt, eps)`; since then it is added in place.
    """
    add_in_place = torch._foreach_add_

    def add(tensors: Any, other: Any, **named: Any) -> None:
        if not (isinstance(other, float) and len(tensors) > 1 and not named):
            add_in_place(tensors, other, **named)
            return
        copies = torch._foreach_add(tensors, other)
        torch._foreach_copy_(tensors, copies)

    with patch.object(torch, "_foreach_add_", add):
        yield


@contextmanager
def _longest_batch_first() -> Iterator[None]:
    """Begin each step with nothing left of an earlier one, as where the longest batch is the first of a training.

    litgpt took it first in 2023 (`longest_seq_ix if iter_num == 0`): what later, shorter batches leave takes less.
    """
    begin = step.TrainingStep.begin

    def with_nothing_left(made: step.TrainingStep) -> None:
        made.outputs, made.loss = None, None
        begin(made)

    with patch.object(step.TrainingStep, "begin", with_nothing_left):
        yield


PRACTICES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "4-bit layers keep their input": _4_bit_layers_keep_their_input,
    "4 bits from fp16": _4_bits_from_fp16,
    "Adam copies its denominators": _adam_copies_its_denominators,
    "softmax keeps its input": _softmax_keeps_its_input,
    "logits in fp32": _logits_in_fp32,
    "longest batch first": _longest_batch_first,
    "one parameter at a time": _optimizer_without_copies,
}

NOT_IN_PROFILES = frozenset({"4 bits from fp16", "longest batch first"})
"""What no profile says of a library's training: estimates by the profile are made without."""


@contextmanager
def patched_in(practices: Iterable[str]) -> Iterator[None]:
    """Follow these practices while in the context."""
    with ExitStack() as stack:
        for practice in practices:
            stack.enter_context(PRACTICES[practice]())
        yield
