"""The models of data/measured_peaks.json, built as those runs trained them, for the tracer."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from engine.measurement.optimizers import LEARNING_RATE
from engine.measurement.step import TrainingStep
from engine.measurement.torchvision_schemas import import_torchvision
from engine.measurement.workloads import Built, transformer
from engine.settings.spec import RunSpec

IMAGE_SIDE, TOKENS = 86, 128

_VISION: dict[str, tuple[str, dict[str, Any], int]] = {  # start of its name there -> constructor, arguments, classes
    "torchvision convnext_tiny": ("convnext_tiny", {}, 1000),
    "torchvision convnext_base": ("convnext_base", {}, 1000),
    "torchvision MNASNet": ("mnasnet1_0", {"num_classes": 10}, 10),
    "torchvision MobileNetV3": ("mobilenet_v3_large", {"num_classes": 10}, 10),
}
_LANGUAGE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "GPT2LMHeadModel(GPT2Config(n_layer=6))": ("GPT2LMHeadModel", "GPT2Config", {"n_layer": 6}),
    "GPT2LMHeadModel(GPT2Config(n_layer=10": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"n_layer": 10, "n_inner": 3072, "n_positions": 2048, "activation_function": "gelu"},
    ),
    "GPTNeoForCausalLM": (
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {
            "hidden_size": 768,
            "num_layers": 12,
            "num_heads": 12,
            "attention_types": [[["global", "local"], 6]],
            "intermediate_size": 3072,
            "window_size": 256,
            "max_position_embeddings": 2048,
            "vocab_size": 50257,
            "attn_implementation": "eager",
        },
    ),
    "Qwen2ForCausalLM": (
        "Qwen2ForCausalLM",
        "Qwen2Config",
        {
            "hidden_size": 1536,
            "num_hidden_layers": 28,
            "num_attention_heads": 12,
            "num_key_value_heads": 2,
            "intermediate_size": 8960,
            "vocab_size": 151936,
            "tie_word_embeddings": False,
        },
    ),
}


def is_language(model: str) -> bool:
    return not model.startswith("torchvision")


def step_maker(model: str, optimizer: str) -> Callable[[torch.device], TrainingStep]:
    """What the tracer takes: makes a training step on a device."""

    def make(device: torch.device) -> TrainingStep:
        built = _language(model, device) if is_language(model) else _vision(model, device)
        step = TrainingStep(RunSpec("bert", optimizer="none"), built, device)
        step.optimizer = getattr(torch.optim, optimizer)(built.model.parameters(), lr=LEARNING_RATE)
        return step

    return make


def _entry(table: dict[str, Any], model: str) -> Any:
    return next(entry for start, entry in table.items() if model.startswith(start))


def _vision(model: str, device: torch.device) -> Built:
    import_torchvision()
    constructor, arguments, classes = _entry(_VISION, model)
    network: nn.Module = getattr(importlib.import_module("torchvision.models"), constructor)(weights=None, **arguments)

    def make_batch(size: int) -> dict[str, Tensor]:
        pixels = torch.randn(size, 3, IMAGE_SIDE, IMAGE_SIDE, device=device)
        return {"pixels": pixels, "labels": torch.randint(0, classes, (size,), device=device)}

    return Built(
        network.train(),
        make_batch,
        lambda batch: network(batch["pixels"]),
        lambda logits, batch: nn.functional.cross_entropy(logits, batch["labels"]),
    )


def _language(model: str, device: torch.device) -> Built:
    import_torchvision()
    transformers = importlib.import_module("transformers")
    model_class, config_class, changes = _entry(_LANGUAGE, model)
    config = getattr(transformers, config_class)(**changes)
    network: nn.Module = getattr(transformers, model_class)(config)

    def make_batch(size: int) -> dict[str, Tensor]:
        tokens = torch.randint(0, config.vocab_size, (size, TOKENS), device=device)
        return {"input_ids": tokens, "labels": tokens}

    return transformer(network.train(), make_batch)
