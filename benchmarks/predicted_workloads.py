"""The four workloads of the eight predictions that wait for a GPU: how they are built, and what was said of them.

`SKETCHED_MIB` are the figures of the first sketch of the predictor, for an H100 of 80 GB with AdamW in train mode
(torch 2.13, transformers 5.23): peak allocated and peak reserved. GPT-2 is the language model here and ViT the one of
transformers, which the catalogue of the engine does not offer; the others are as there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

import torch

from engine.measurement.step import TrainingStep
from engine.measurement.torchvision_schemas import import_torchvision
from engine.measurement.workloads import Built, build, transformer
from engine.settings.spec import RunSpec

PRECISIONS = ("fp32", "bf16")
_GPT2_TOKENS, _GPT2_VOCABULARY = 512, 50_257


@dataclass(frozen=True)
class PredictedWorkload:
    """One of the four: its settings, its batch size, and the sketch's figures by precision."""

    model: str
    batch_size: int
    sketched_mib: dict[str, tuple[int, int]]
    build: Callable[[RunSpec, torch.device], Built] = build

    def make_step(self, precision: str) -> Callable[[torch.device], TrainingStep]:
        spec = RunSpec(self.model, precision=precision)
        return lambda device: TrainingStep(spec, self.build(spec, device), device)


def _gpt2_language_model(_: RunSpec, device: torch.device) -> Built:
    """Whole texts of 512 tokens, no padding: each token is a label."""
    transformers = importlib.import_module("transformers")
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).train().to(device)

    def make_batch(size: int) -> dict[str, torch.Tensor]:
        tokens = torch.randint(0, _GPT2_VOCABULARY, (size, _GPT2_TOKENS), device=device)
        return {"input_ids": tokens, "labels": tokens}

    return transformer(model, make_batch)


def _vision_transformer(spec: RunSpec, device: torch.device) -> Built:
    """ViT-B/16 of transformers for 1,000 classes."""
    import_torchvision()
    transformers = importlib.import_module("transformers")
    labels, side = spec.workload.label_count, spec.input_size
    model = transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=labels)).train().to(device)

    def make_batch(size: int) -> dict[str, torch.Tensor]:
        pixels = torch.randn(size, 3, side, side, device=device)
        return {"pixel_values": pixels, "labels": torch.randint(0, labels, (size,), device=device)}

    return transformer(model, make_batch)


PREDICTED = {
    "bert-base b32 s128": PredictedWorkload("bert", 32, {"fp32": (3849, 4104), "bf16": (3133, 3376)}),
    "gpt2 LM b8 s512": PredictedWorkload(
        "gpt2", 8, {"fp32": (8287, 8944), "bf16": (7355, 7672)}, build=_gpt2_language_model
    ),
    "resnet50 b64 224": PredictedWorkload("resnet", 64, {"fp32": (5683, 6284), "bf16": (3166, 3430)}),
    "vit-b16 b32 224": PredictedWorkload(
        "vit_b_16", 32, {"fp32": (4733, 5014), "bf16": (3559, 3768)}, build=_vision_transformer
    ),
}
