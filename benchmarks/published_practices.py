"""What authors of published trainings did that no setting says yet: patched in while such a training is traced.

A practice leaves this file when the engine has a setting for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from torch import Tensor, nn

from engine.measurement import language_model_loss, step


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
