"""Builds the model, the batches and the loss of a catalogue entry. Needs torch: runs only in the worker.

Weights are random, from the configuration bundled with the installed transformers or torchvision: same
shapes, same memory, same speed as trained ones, and nothing is downloaded. `pretrained` loads the hub's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..catalog import WORKLOADS
from ..errors import SpecError, WeightsUnavailable
from ..spec import RunSpec
from .torchvision_schemas import import_torchvision

Batch = dict[str, Tensor]

GPT2_PAD_TOKEN = 50_256

# id -> (model class, configuration class, changes to the default configuration)
_TRANSFORMERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertForSequenceClassification", "BertConfig", {}),
    "gpt2": ("GPT2ForSequenceClassification", "GPT2Config", {"pad_token_id": GPT2_PAD_TOKEN}),
    "resnet": ("ResNetForImageClassification", "ResNetConfig", {}),
    "bert-tiny": (
        "BertForSequenceClassification",
        "BertConfig",
        {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512},
    ),
    "distilbert": ("DistilBertForSequenceClassification", "DistilBertConfig", {}),
}


@dataclass(frozen=True)
class Built:
    """A model on its device, with what a training step needs.

    `make_batch(n)` returns new random inputs whose first dimension is n: token ids (n, sequence length) or
    pixels (n, 3, side, side), and labels (n,). `forward(batch)` returns all that the model gives, which the step
    keeps as a training loop does; `loss(outputs, batch)` the scalar cross-entropy.
    """

    model: nn.Module
    make_batch: Callable[[int], Batch]
    forward: Callable[[Batch], Any]
    loss: Callable[[Any, Batch], Tensor]


def preload(model_id: str) -> None:
    """Import everything the workload needs, and build nothing."""
    import_torchvision()
    if model_id in _TRANSFORMERS:
        model_class, config_class, _ = _TRANSFORMERS[model_id]
        transformers = importlib.import_module("transformers")
        getattr(transformers, model_class)
        getattr(transformers, config_class)
    else:
        importlib.import_module("torchvision.models")


def build(spec: RunSpec, device: torch.device) -> Built:
    """Build the workload of `spec` on `device`, in train or eval mode."""
    model = _pretrained(spec) if spec.pretrained else _from_configuration(spec)
    if spec.gradient_checkpointing:
        _enable_checkpointing(spec, model)
    model.train(spec.mode == "train")
    model.to(device)
    make_batch = _text_batch if spec.workload.is_text else _image_batch
    if spec.workload.library == "transformers":
        return transformer(model, lambda n: make_batch(spec, n, device))
    return Built(
        model,
        lambda n: make_batch(spec, n, device),
        lambda batch: model(batch["pixel_values"]),
        lambda logits, batch: nn.functional.cross_entropy(logits, batch["labels"]),
    )


def transformer(model: nn.Module, make_batch: Callable[[int], Batch]) -> Built:
    """Wrap a model of transformers, which takes the batch as its arguments and gives the loss with its outputs."""
    return Built(model, make_batch, lambda batch: model(**batch), lambda outputs, _: outputs.loss)


def _from_configuration(spec: RunSpec) -> nn.Module:
    import_torchvision()
    if spec.model not in _TRANSFORMERS:
        constructor = getattr(importlib.import_module("torchvision.models"), spec.model)
        sized = {"image_size": spec.input_size} if spec.model.startswith("vit") else {}
        model: nn.Module = constructor(weights=None, **sized)
        return model
    model_class, config_class, changes = _TRANSFORMERS[spec.model]
    transformers = importlib.import_module("transformers")
    config = getattr(transformers, config_class)(num_labels=spec.workload.label_count, **changes)
    built: nn.Module = getattr(transformers, model_class)(config)
    return built


def _pretrained(spec: RunSpec) -> nn.Module:
    """Load the hub's weights by the ordinary calls; the tokenizer or image processor, to prove it is there."""
    import_torchvision()
    transformers = importlib.import_module("transformers")
    name, workload = spec.workload.huggingface_id, spec.workload
    auto = "AutoModelForSequenceClassification" if workload.is_text else "AutoModelForImageClassification"
    helper = "AutoTokenizer" if workload.is_text else "AutoImageProcessor"
    labels = {"num_labels": workload.label_count} if workload.is_text else {}
    try:
        getattr(transformers, helper).from_pretrained(name)
        model: nn.Module = getattr(transformers, auto).from_pretrained(name, **labels)
    except OSError as exc:
        reason = str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__
        raise WeightsUnavailable(
            f"the weights of {name} cannot be loaded ({reason}). Without network access or a local cache run "
            "without --pretrained: random weights take the same memory and time."
        ) from exc
    if spec.model == "gpt2":
        config: Any = model.config
        config.pad_token_id = GPT2_PAD_TOKEN
    return model.float()  # a hub checkpoint may be stored in half precision


def _enable_checkpointing(spec: RunSpec, model: nn.Module) -> None:
    # named activation_checkpointing_enable since transformers 5.23
    names = ("activation_checkpointing_enable", "gradient_checkpointing_enable")
    enable = next((getattr(model, name) for name in names if hasattr(model, name)), None)
    if enable is None:
        raise SpecError("gradient_checkpointing", f"{spec.model} of the installed version has none")
    enable({"use_reentrant": False})


def _text_batch(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    """Random tokens; the last one of the first sample is padding, as in any real batch of unequal texts.

    A mask of ones would be dropped by the model and take less memory than real training does.
    """
    vocabulary = WORKLOADS[spec.model].vocabulary_size or 2
    tokens = torch.randint(0, vocabulary - 1, (batch_size, spec.input_size), device=device)
    mask = torch.ones_like(tokens)
    if spec.input_size > 1:
        mask[0, -1] = 0
    if spec.model == "gpt2":
        tokens = tokens.masked_fill(mask == 0, GPT2_PAD_TOKEN)
    return {"input_ids": tokens, "attention_mask": mask, "labels": _labels(spec, batch_size, device)}


def _image_batch(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    side = spec.input_size
    pixels = torch.randn(batch_size, 3, side, side, device=device)
    return {"pixel_values": pixels, "labels": _labels(spec, batch_size, device)}


def _labels(spec: RunSpec, batch_size: int, device: torch.device) -> Tensor:
    return torch.randint(0, spec.workload.label_count, (batch_size,), device=device)
