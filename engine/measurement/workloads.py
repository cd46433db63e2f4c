"""Builds the model of a catalogue entry, with its batches and its loss. Needs torch: runs only in the worker.

Weights are random, from the configuration in the catalogue and the installed library: they have the shapes, memory and
speed of trained ones, and nothing is downloaded. `pretrained` loads the hub's.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SpecError, WeightsUnavailable
from ..settings.adapter_settings import BF16
from ..settings.catalog import WORKLOADS, Workload
from ..settings.lora_options import FourBits, is_trained_whole, lora_options
from ..settings.lora_targets import ALL_LINEAR, check_targets
from ..settings.spec import RunSpec
from ..settings.step_settings import FLASH, PACKED, PURE_BF16
from .batches import Batch, make_batch
from .checkpointing import enable_checkpointing
from .compiling import compile_for_each_size
from .language_model_loss import forward_and_loss
from .torchvision_schemas import import_torchvision

_AUXILIARY_WEIGHT = 0.5
"""Weight of the loss of a segmentation model's second head, as in torchvision's own training script."""
_IMAGE_DIMENSIONS = 4
_PREPROCESSORS = {
    "text-classification": "AutoTokenizer",
    "text-generation": "AutoTokenizer",
    "text2text-generation": "AutoTokenizer",
    "image-classification": "AutoImageProcessor",
}


@dataclass(frozen=True)
class Built:
    """A model on its device; `make_batch(n)` returns random inputs whose first dimension is n.

    `forward(batch)` returns all outputs, which the step holds as a loop does; `loss(outputs, batch)` the scalar.
    """

    model: nn.Module
    make_batch: Callable[[int], Batch]
    forward: Callable[[Batch], Any]
    loss: Callable[[Any, Batch], Tensor]


def preload(model_id: str) -> None:
    """Import everything that the workload needs, and build nothing. Does not start CUDA, so the process can fork."""
    with _taken_for_missing("bitsandbytes"):  # diffusers imports it, and it queries the card's capability
        import_torchvision()
        if (workload := WORKLOADS.get(model_id)) is None:  # a config's class is imported when the model is built
            importlib.import_module("transformers.modeling_utils")
            return
        _attribute(workload, workload.model_class)
        if workload.config_class:
            _attribute(workload, workload.config_class)


@contextmanager
def _taken_for_missing(package: str) -> Iterator[None]:
    """Make a package appear not installed in the context, unless it has been imported already."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # how Python marks what cannot be imported
    try:
        yield
    finally:
        del sys.modules[package]


def build(spec: RunSpec, device: torch.device, layers: int | None = None) -> Built:
    """Build the workload of `spec` on `device`, in train or eval mode; with fewer `layers` only for a trace."""
    if spec.attention == FLASH:
        _check_flash_attention(device)
    with _weights_of(spec.precision):
        model = _quantized(spec, device, layers) if spec.is_quantized else _loaded(spec, layers)
    if spec.lora_rank is not None:
        model = _with_adapters(model, spec)
    if spec.frozen_blocks is not None:
        _freeze(model, spec.frozen_blocks)
    if spec.gradient_checkpointing:
        enable_checkpointing(model)
    if spec.channels_last:
        _lay_channels_last(model)
    model.train(spec.mode == "train")
    model.to(device)
    if spec.torch_compile:
        compile_for_each_size(model)
    if spec.has_own_loss:
        return Built(model, lambda n: _inputs(spec, n, device), *forward_and_loss(spec, model))
    usual = _classifier if spec.workload.library == "torchvision" else transformer
    return _WRAPPERS.get(spec.workload.task, usual)(model, lambda n: _inputs(spec, n, device))


@contextmanager
def _weights_of(precision: str) -> Iterator[None]:
    """Create new weights in the precision of the training, because a trace cannot follow a conversion."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if precision == PURE_BF16 else usual)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


def _inputs(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    batch = make_batch(spec, batch_size, device)
    if spec.precision == PURE_BF16:
        batch = {name: tensor.bfloat16() if tensor.is_floating_point() else tensor for name, tensor in batch.items()}
    if spec.channels_last:
        batch = {name: _channels_last(tensor) for name, tensor in batch.items()}
    return batch


def transformer(model: nn.Module, make_batch: Callable[[int], Batch]) -> Built:
    return Built(model, make_batch, lambda batch: model(**batch), lambda outputs, _: outputs.loss)


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
    "image-text-matching": lambda model, make_batch: Built(
        model, make_batch, lambda batch: model(**batch, return_loss=True), lambda outputs, _: outputs.loss
    ),
    "text-to-image": _denoiser,
}


def equal_layers(spec: RunSpec) -> int | None:
    """Return the number of layers of a model that is one stack of equal layers; None for all others."""
    workload = spec.workload
    if workload.library != "transformers" or workload.architecture != "transformer" or not workload.config_class:
        return None
    import_torchvision()
    config = _attribute(workload, workload.config_class)(**_config(spec))
    layers: int | None = getattr(config, "num_hidden_layers", None)
    are_alike = all(len(set(map(str, values))) == 1 for values in _of_each_layer(config, layers).values())
    return layers if are_alike and not config.is_encoder_decoder else None


def _of_each_layer(config: Any, layers: int | None) -> dict[str, list[Any]]:
    return {name: value for name, value in vars(config).items() if isinstance(value, list) and len(value) == layers}


def _shorten(config: Any, layers: int) -> None:
    for name, values in _of_each_layer(config, config.num_hidden_layers).items():
        setattr(config, name, values[:layers])
    config.num_hidden_layers = layers


def build_model(spec: RunSpec, layers: int | None = None) -> nn.Module:
    import_torchvision()
    workload = spec.workload
    make_model, config = _attribute(workload, workload.model_class), _config(spec)
    if workload.library == "torchvision":
        # models with a backbone would load its trained weights
        without_weights = {"weights": None} | ({"weights_backbone": None} if "." in workload.model_class else {})
        model: nn.Module = make_model(**without_weights, **config)
    elif workload.config_class:
        made_config = _attribute(workload, workload.config_class)(**config)
        if layers is not None:
            _shorten(made_config, layers)
        model = make_model(made_config)
    else:
        model = make_model(**config)
    return model


def _config(spec: RunSpec) -> dict[str, Any]:
    workload, config = spec.workload, dict(spec.workload.config)
    if workload.library == "transformers" and workload.label_count is not None:
        config["num_labels"] = workload.label_count
    if workload.sized_by is not None:
        *parents, key = workload.sized_by.split(".")
        value: Any = {key: spec.input_size}
        for parent in reversed(parents):
            value = {parent: value}
        config |= value
    return config | _attention_and_cache(spec)


def _attention_and_cache(spec: RunSpec) -> dict[str, Any]:
    """Return a config's settings of attention and cache: with a cache, a packed row would count as one sequence."""
    chosen: dict[str, Any] = {} if spec.attention == "auto" else {"attn_implementation": spec.attention}
    return {**chosen, "use_cache": False} if spec.without_cache or spec.sequences == PACKED else chosen


def _check_flash_attention(device: torch.device) -> None:
    """Raise SpecError where FlashAttention cannot run: transformers would replace it, or fail in the first step."""
    if device.type != "cuda":
        raise SpecError("attention", f"{FLASH} needs a CUDA card, not {device.type}")
    if importlib.util.find_spec("flash_attn") is None:
        raise SpecError("attention", f"{FLASH} needs the package flash-attn, which is not installed here")


def _attribute(workload: Workload, path: str) -> Any:
    """Return a class or constructor of the workload's library, by its path, such as `segmentation.fcn_resnet50`."""
    package = "torchvision.models" if workload.library == "torchvision" else workload.library
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"{package}.{module}" if module else package), name)


def _pretrained(spec: RunSpec) -> nn.Module:
    """Load the hub's weights by the ordinary calls, and the tokenizer or processor to prove that it exists."""
    import_torchvision()
    transformers = importlib.import_module("transformers")
    name, workload = spec.workload.huggingface_id, spec.workload
    labels = {"num_labels": workload.label_count} if workload.task == "text-classification" else {}
    try:
        getattr(transformers, _PREPROCESSORS.get(workload.task, "AutoProcessor")).from_pretrained(name)
        model: nn.Module = getattr(transformers, workload.model_class).from_pretrained(
            name, **labels, **_attention_and_cache(spec)
        )
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


def _loaded(spec: RunSpec, layers: int | None) -> nn.Module:
    return _pretrained(spec) if spec.pretrained else build_model(spec, layers)


def _quantized(spec: RunSpec, device: torch.device, layers: int | None) -> nn.Module:
    """Load the model with its linear layers in 4 or 8 bits. Imports bitsandbytes here: it must not before a fork."""
    name = "load_in_4bit" if spec.load_in_4bit else "load_in_8bit"
    try:
        from .quantization import linear_layers_without_weights, quantize
    except ImportError as exc:
        raise SpecError(name, f"needs bitsandbytes: pip install bitsandbytes ({exc})") from exc
    with nullcontext() if spec.pretrained else linear_layers_without_weights():
        model = _loaded(spec, layers)
    quantize(model, FourBits.of(spec, spec.precision) if spec.load_in_4bit else None, device, name)
    return model


def _with_adapters(model: nn.Module, spec: RunSpec) -> nn.Module:
    """Freeze the model and add adapters to its linear layers. Raises SpecError for a layer that it does not have."""
    peft = importlib.import_module("peft")
    options = lora_options(spec, spec.workload)
    if (targets := options["target_modules"]) != ALL_LINEAR:
        linear = (nn.Linear, importlib.import_module("transformers.pytorch_utils").Conv1D)
        paths = [path for path, module in model.named_modules() if isinstance(module, linear)]
        check_targets(targets, [path for path in paths if not is_trained_whole(path, options)], spec.workload.name)
    config = peft.LoraConfig(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft uses a name of transformers 4 for checkpointing
        if spec.lora_weights != BF16:
            return peft.get_peft_model(model, config)  # type: ignore[no-any-return]
        with _weights_of(spec.precision):
            adapted: nn.Module = peft.get_peft_model(model, config, autocast_adapter_dtype=False)
    for parameter in adapted.parameters():
        if parameter.requires_grad:  # of layers of 4 bits peft took the type in which they compute
            parameter.data = parameter.data.bfloat16()
    return adapted


def _lay_channels_last(model: nn.Module) -> None:
    """Do what `model.to(memory_format=torch.channels_last)` does, which a trace cannot follow."""
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            if parameter.dim() == _IMAGE_DIMENSIONS:
                laid_out = _channels_last(parameter.detach())
                setattr(module, name, nn.Parameter(laid_out, requires_grad=parameter.requires_grad))


def _channels_last(tensor: Tensor) -> Tensor:
    is_image = tensor.dim() == _IMAGE_DIMENSIONS and tensor.is_floating_point()
    return tensor.contiguous(memory_format=torch.channels_last) if is_image else tensor


def _freeze(model: nn.Module, count: int) -> None:
    *_, last = blocks_of(model)[count - 1].parameters()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
        if parameter is last:
            return


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """Return the longest series of modules whose paths differ only in their last part, a number."""
    return max(_series(model).values(), key=len)


def series_of_blocks(model: nn.Module) -> list[nn.Module]:
    stacks = [blocks for name, blocks in _series(model).items() if name.endswith(".")]
    return [block for blocks in stacks if len(blocks) > 1 for block in blocks] or blocks_of(model)


def _series(model: nn.Module) -> dict[str, list[nn.Module]]:
    series: dict[str, list[nn.Module]] = {}
    for path, module in model.named_modules():
        name = path.rstrip("0123456789")
        if name != path and not any(character.isdigit() for character in name):
            series.setdefault(name, []).append(module)
    return series
