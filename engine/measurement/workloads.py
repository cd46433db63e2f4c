"""Builds the model of a catalogue entry, with its batches and its loss. Needs torch: runs only in the worker.

Weights are random, from the configuration in the catalogue and the installed library: same shapes, same memory, same
speed as trained ones, and nothing is downloaded. `pretrained` loads the hub's.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..catalog import WORKLOADS, Workload
from ..errors import SpecError, WeightsUnavailable
from ..spec import PURE_BF16, RunSpec
from .batches import Batch, make_batch
from .torchvision_schemas import import_torchvision

_AUXILIARY_WEIGHT = 0.5
"""Of the loss of a segmentation model's second head, as in torchvision's own training script."""
_PREPROCESSORS = {
    "text-classification": "AutoTokenizer",
    "text-generation": "AutoTokenizer",
    "text2text-generation": "AutoTokenizer",
    "image-classification": "AutoImageProcessor",
}


@dataclass(frozen=True)
class Built:
    """A model on its device, with what a training step needs.

    `make_batch(n)` returns new random inputs whose first dimension is n. `forward(batch)` returns all that the model
    gives, which the step keeps as a training loop does; `loss(outputs, batch)` the scalar that is learned from.
    """

    model: nn.Module
    make_batch: Callable[[int], Batch]
    forward: Callable[[Batch], Any]
    loss: Callable[[Any, Batch], Tensor]


def preload(model_id: str) -> None:
    """Import everything the workload needs, and build nothing."""
    workload = WORKLOADS[model_id]
    import_torchvision()
    _attribute(workload, workload.model_class)
    if workload.config_class:
        _attribute(workload, workload.config_class)


def build(spec: RunSpec, device: torch.device) -> Built:
    """Build the workload of `spec` on `device`, in train or eval mode."""
    with _weights_of(spec.precision):
        model = _pretrained(spec) if spec.pretrained else _from_configuration(spec)
    if spec.lora_rank is not None:
        model = _with_adapters(model, spec)
    if spec.gradient_checkpointing:
        _enable_checkpointing(spec, model)
    model.train(spec.mode == "train")
    model.to(device)
    usual = _classifier if spec.workload.library == "torchvision" else transformer
    return _WRAPPERS.get(spec.workload.task, usual)(model, lambda n: _inputs(spec, n, device))


@contextmanager
def _weights_of(precision: str) -> Iterator[None]:
    """Have new weights made in the precision of the training, because a trace cannot follow a conversion."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if precision == PURE_BF16 else usual)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


def _inputs(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    batch = make_batch(spec, batch_size, device)
    if spec.precision != PURE_BF16:
        return batch
    return {name: tensor.bfloat16() if tensor.is_floating_point() else tensor for name, tensor in batch.items()}


def transformer(model: nn.Module, make_batch: Callable[[int], Batch]) -> Built:
    """Wrap a model of transformers, which takes the batch as its arguments and gives the loss with its outputs."""
    return Built(model, make_batch, lambda batch: model(**batch), lambda outputs, _: outputs.loss)


def _image_text_matcher(model: nn.Module, make_batch: Callable[[int], Batch]) -> Built:
    return Built(model, make_batch, lambda batch: model(**batch, return_loss=True), lambda outputs, _: outputs.loss)


def _classifier(model: nn.Module, make_batch: Callable[[int], Batch]) -> Built:
    def loss(logits: Tensor, batch: Batch) -> Tensor:
        return nn.functional.cross_entropy(logits, batch["labels"])

    return Built(model, make_batch, lambda batch: model(batch["pixel_values"]), loss)


def _segmenter(model: nn.Module, make_batch: Callable[[int], Batch]) -> Built:
    def loss(outputs: Mapping[str, Tensor], batch: Batch) -> Tensor:
        of_head = {name: nn.functional.cross_entropy(logits, batch["labels"]) for name, logits in outputs.items()}
        return of_head["out"] + _AUXILIARY_WEIGHT * of_head["aux"]

    return Built(model, make_batch, lambda batch: model(batch["pixel_values"]), loss)


def _detector(model: nn.Module, make_batch: Callable[[int], Batch]) -> Built:
    def forward(batch: Batch) -> Any:
        pairs = zip(batch["boxes"], batch["labels"], strict=True)
        return model(list(batch["pixel_values"]), [{"boxes": boxes, "labels": labels} for boxes, labels in pairs])

    return Built(model, make_batch, forward, lambda losses, _: torch.stack(list(losses.values())).sum())


def _denoiser(model: nn.Module, make_batch: Callable[[int], Batch]) -> Built:
    def forward(batch: Batch) -> Any:
        return model(batch["sample"], batch["timestep"], encoder_hidden_states=batch["encoder_hidden_states"])

    def loss(outputs: Any, batch: Batch) -> Tensor:
        return nn.functional.mse_loss(outputs.sample, batch["noise"])

    return Built(model, make_batch, forward, loss)


_WRAPPERS: dict[str, Callable[[nn.Module, Callable[[int], Batch]], Built]] = {
    "image-segmentation": _segmenter,
    "object-detection": _detector,
    "image-text-matching": _image_text_matcher,
    "text-to-image": _denoiser,
}


def _from_configuration(spec: RunSpec) -> nn.Module:
    import_torchvision()
    workload = spec.workload
    make_model, config = _attribute(workload, workload.model_class), _config(spec)
    if workload.library == "torchvision":
        # models with a backbone would load its trained weights
        without_weights = {"weights": None} | ({"weights_backbone": None} if "." in workload.model_class else {})
        model: nn.Module = make_model(**without_weights, **config)
    elif workload.config_class:
        model = make_model(_attribute(workload, workload.config_class)(**config))
    else:
        model = make_model(**config)
    return model


def _config(spec: RunSpec) -> dict[str, Any]:
    """Return the entry's changes to the library's default configuration, with the input's size where it is needed."""
    workload, config = spec.workload, dict(spec.workload.config)
    if workload.library == "transformers" and workload.label_count is not None:
        config["num_labels"] = workload.label_count
    if workload.sized_by is not None:
        *parents, key = workload.sized_by.split(".")
        value: Any = {key: spec.input_size}
        for parent in reversed(parents):
            value = {parent: value}
        config |= value
    return config


def _attribute(workload: Workload, path: str) -> Any:
    """Return a class or a constructor of the workload's library: `segmentation.fcn_resnet50` is in a module of it."""
    package = "torchvision.models" if workload.library == "torchvision" else workload.library
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"{package}.{module}" if module else package), name)


def _pretrained(spec: RunSpec) -> nn.Module:
    """Load the hub's weights by the ordinary calls; the tokenizer or processor, to prove it is there."""
    import_torchvision()
    transformers = importlib.import_module("transformers")
    name, workload = spec.workload.huggingface_id, spec.workload
    labels = {"num_labels": workload.label_count} if workload.task == "text-classification" else {}
    try:
        getattr(transformers, _PREPROCESSORS.get(workload.task, "AutoProcessor")).from_pretrained(name)
        model: nn.Module = getattr(transformers, workload.model_class).from_pretrained(name, **labels)
    except OSError as exc:
        reason = str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__
        raise WeightsUnavailable(
            f"the weights of {name} cannot be loaded ({reason}). Without network access or a local cache run "
            "without --pretrained: random weights take the same memory and time."
        ) from exc
    if "pad_token_id" in workload.config:
        config: Any = model.config
        config.pad_token_id = workload.config["pad_token_id"]
    return model.to(torch.get_default_dtype())  # a hub checkpoint may be stored in half precision


def _with_adapters(model: nn.Module, spec: RunSpec) -> nn.Module:
    """Freeze the model and put adapters beside its linear layers; a classifier's new head is learned as a whole."""
    peft = importlib.import_module("peft")
    task = {"task_type": "SEQ_CLS"} if spec.workload.task == "text-classification" else {}
    rank = spec.lora_rank or 1
    config = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", **task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks for checkpointing by the name of transformers 4
        adapted: nn.Module = peft.get_peft_model(model, config)
    return adapted


def _enable_checkpointing(spec: RunSpec, model: nn.Module) -> None:
    # named activation_checkpointing_enable since transformers 5.23; diffusers' is never reentrant
    names = ("activation_checkpointing_enable", "gradient_checkpointing_enable", "enable_gradient_checkpointing")
    enable = next((getattr(model, name) for name in names if hasattr(model, name)), None)
    if enable is None:
        raise SpecError("gradient_checkpointing", f"{spec.model} of the installed version has none")
    enable(*([] if spec.workload.library == "diffusers" else [{"use_reentrant": False}]))
