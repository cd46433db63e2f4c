"""The loss of a language model outside of its own forward pass: in chunks of tokens, or in half precision. Needs torch.

A chunk holds tokens of every sample, as in litgpt and torchtune: their number then does not depend on the batch size.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..errors import SpecError
from ..settings.loop_settings import RECOMPUTED
from ..settings.spec import RunSpec
from .batches import NOT_LEARNED, Batch

Logits = Callable[[Tensor], Tensor]


def forward_and_loss(spec: RunSpec, model: Any) -> tuple[Callable[[Batch], Any], Callable[[Any, Batch], Tensor]]:
    """Return the forward pass of a language model and its loss, as `Built` takes them."""
    if spec.liger_loss:
        return _last_hidden_states(model), _liger_loss(model)
    upcasts = not spec.half_precision_loss
    if spec.loss_chunk_tokens is None:
        loss = partial(_whole_loss, upcasts=upcasts)
        return (lambda batch: model(**_inputs(batch)).logits), loss
    hidden_states = _last_hidden_states(model)
    logits_of, split = _output_layer(model), partial(torch.split, split_size_or_sections=spec.loss_chunk_tokens, dim=1)

    def hidden_chunks(batch: Batch) -> Sequence[Tensor]:
        return split(hidden_states(batch))

    def loss_of_chunks(chunks: Sequence[Tensor], batch: Batch, *, one: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        labels = _next_tokens(batch)
        losses = [one(chunk, targets) for chunk, targets in zip(chunks, split(labels), strict=True)]
        return torch.stack(losses).sum() / (labels != NOT_LEARNED).sum()

    summed = partial(_summed_loss, upcasts=upcasts)
    if spec.loss_chunk_logits == RECOMPUTED:

        def one(hidden: Tensor, targets: Tensor) -> Tensor:
            return summed(logits_of(hidden), targets)

        return hidden_chunks, partial(loss_of_chunks, one=partial(checkpoint, one, use_reentrant=False))
    return (lambda batch: [logits_of(hidden) for hidden in hidden_chunks(batch)]), partial(loss_of_chunks, one=summed)


def _last_hidden_states(model: Any) -> Callable[[Batch], Tensor]:
    return lambda batch: model.get_decoder()(**_inputs(batch)).last_hidden_state


def _liger_loss(model: Any) -> Callable[[Tensor, Batch], Tensor]:
    """Return Liger's loss, whose forward pass computes the gradients too, for some tokens of all samples at a time."""
    if importlib.util.find_spec("liger_kernel") is None:
        raise SpecError(
            "liger_loss", "needs the package liger-kernel, which is not installed here: pip install liger-kernel"
        )
    if getattr(model.config, "logits_scaling", None) is not None:
        raise SpecError("liger_loss", f"does not scale logits as {type(model).__name__} does; give loss_chunk_tokens")
    cap = getattr(model.config, "final_logit_softcapping", None)
    fused = importlib.import_module("liger_kernel.transformers").LigerFusedLinearCrossEntropyLoss(softcap=cap)
    layer = model.get_output_embeddings()

    def loss(hidden: Tensor, batch: Batch) -> Tensor:
        found: Tensor = fused(layer.weight, hidden.flatten(0, 1), _next_tokens(batch).flatten(), layer.bias)
        return found

    return loss


def _output_layer(model: Any) -> Logits:
    """Return what makes logits of hidden states, scaling included. Raises SpecError without an output layer."""
    layer, config = model.get_output_embeddings(), model.config
    if layer is None:
        raise SpecError("loss_chunk_tokens", f"{type(model).__name__} has no output layer of its own; leave it out")
    cap = getattr(config, "final_logit_softcapping", None)  # Gemma 2
    divisor = getattr(config, "logits_scaling", None)  # Granite

    def logits_of(hidden: Tensor) -> Tensor:
        logits: Tensor = layer(hidden)
        if divisor is not None:
            logits = logits / divisor
        if cap is not None:
            logits = torch.tanh(logits / cap) * cap
        return logits

    return logits_of


def _inputs(batch: Batch) -> Batch:
    return {name: tensor for name, tensor in batch.items() if name != "labels"}


def _next_tokens(batch: Batch) -> Tensor:
    return nn.functional.pad(batch["labels"], (0, 1), value=NOT_LEARNED)[:, 1:]


def _whole_loss(logits: Tensor, batch: Batch, *, upcasts: bool) -> Tensor:
    labels = _next_tokens(batch)
    return _summed_loss(logits, labels, upcasts=upcasts) / (labels != NOT_LEARNED).sum()


def _summed_loss(logits: Tensor, labels: Tensor, *, upcasts: bool) -> Tensor:
    flat = (logits.float() if upcasts else logits).flatten(0, 1)
    return nn.functional.cross_entropy(flat, labels.flatten(), ignore_index=NOT_LEARNED, reduction="sum")
