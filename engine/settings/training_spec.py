"""What is trained: a catalogue model on a device. Fields are declared in `settings`; here is what several decide."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from ..errors import SpecError
from .adapter_settings import BF16, DORA, check_adapters
from .catalog import Workload, workload_ids
from .catalog.from_config import CONFIG, read_config
from .loop_settings import KEPT
from .lora_targets import ALL_LINEAR, TARGETS
from .optimizers import OPTIMIZERS
from .profiles import PROFILES, find, of_profile, settings_like
from .setting import Role, setting
from .spec_checks import check_settings, given_fields, settings_of
from .step_settings import (
    AMPERE,
    BEFORE_FORWARD,
    FLASH,
    FREED,
    HALF_PRECISIONS,
    NEEDS_AMPERE,
    PURE_BF16,
)
from .training_ranks import check_ranks, held_bytes
from .training_settings import TrainingSettings
from .workload_settings import DEVICE_NAMES, HAS_OWN_MEMORY, WorkloadSettings

_BYTES_PER_PARAMETER, _BYTES_PER_HALF = 4, 2  # weights, gradients and state stay fp32 under autocast
_BYTES_IN_8_BITS = 1  # the same, and outliers' columns besides
_BYTES_IN_4_BITS = 0.5  # bytes per parameter, at least: embeddings and the output layer are not quantized
_OF_WORKLOAD = tuple(settings_of(WorkloadSettings))


@dataclass(frozen=True)
class TrainingSpec(TrainingSettings):
    """One training. `None` is the workload's default. Raises SpecError, naming the field, for anything not allowed."""

    like: str = setting(
        Role.ORIGIN,
        "Settings of a library",
        "Profile of a library (`list profiles`), whose settings hold where none are given. "
        "It stays beside them, to say where they are from.",
        default="",
        hint="Its settings hold for every setting here that has its default.",
        choices={"": "none", **{name: f"{name}: {each.label}" for name, each in PROFILES.items()}},
        metavar="PROFILE",
    )

    def __post_init__(self) -> None:
        take_config(self)
        self.take_lora_targets()
        check_settings(self)
        check_training(self)

    @property
    def settings_of_profile(self) -> dict[str, Any]:
        profile = find(self.like).settings if self.like else {}
        return {name: value for name, value in profile.items() if getattr(self, name) == value}

    @property
    def weights_bytes(self) -> int:
        if self.load_in_8bit:
            return _BYTES_IN_8_BITS * self.workload.parameter_count
        if self.load_in_4bit:
            return int(_BYTES_IN_4_BITS * self.workload.parameter_count)
        per_parameter = _BYTES_PER_HALF if self.precision == PURE_BF16 else _BYTES_PER_PARAMETER
        return per_parameter * self.workload.parameter_count

    @property
    def fixed_bytes(self) -> int:
        """Return what every step holds at any batch size, at least: weights, average, gradients, then state."""
        if self.lora_rank is not None or self.frozen_blocks is not None:
            return int(held_bytes(self, self.weights_bytes, 0, 0))
        state_copies = 0 if self.offload_optimizer else OPTIMIZERS[self.optimizer].state_copies
        copies = held_bytes(self, 1 + self.ema, self.gradients != FREED, state_copies)
        return int(copies * self.weights_bytes)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Build a spec from JSON, with its profile's settings where none are given. Raises SpecError."""
        given = given_fields(cls, data)
        if "model" not in given and "config" not in given:
            raise SpecError("model", f"is required; one of {', '.join(workload_ids())}")
        given = {"model": CONFIG, **given}
        profile = given.get("like")
        if not profile or not isinstance(profile, str):
            return cls(**given)
        find(profile)
        trained = cls(**{name: value for name, value in given.items() if name in _OF_WORKLOAD})
        taken = settings_like(profile, given, trained.workload, trained.input_size)
        try:
            return cls(**{**taken, **given})
        except SpecError as error:
            raise of_profile(error, profile, taken) from error


@contextmanager
def named_by_profile(spec: TrainingSpec) -> Iterator[None]:
    try:
        yield
    except SpecError as error:
        raise of_profile(error, spec.like, spec.settings_of_profile) from error


def take_config(spec: TrainingSpec) -> None:
    """Normalize a spec's config, and its model to the id of equal configs. Raises SpecError for a refused config."""
    if spec.config is None:
        for name in ("task", "config_parameters"):
            if getattr(spec, name) is not None:
                raise SpecError(name, "is of a config; leave it out, or send model config with a config")
        if spec.model == CONFIG:
            raise SpecError("config", "is required with the model config: the JSON object of a config.json")
        return
    read = read_config(spec.config, spec.task)
    if spec.model not in (CONFIG, read.id):
        raise SpecError("model", f"must be {CONFIG} where a config is given")
    if spec.pretrained:
        raise SpecError("pretrained", "a config has no weights")
    object.__setattr__(spec, "config", read.text)
    object.__setattr__(spec, "model", read.id)


def check_precision(precision: str, device_name: str, compute_capability: tuple[int, int] | None) -> None:
    """Raise SpecError for a precision that the device does not support. A capability of None: no NVIDIA card."""
    if precision in NEEDS_AMPERE and (compute_capability is None or compute_capability < AMPERE):
        least = ".".join(map(str, AMPERE))
        raise SpecError(
            "precision", f"{precision} needs a CUDA GPU of compute capability {least} or later, not {device_name}"
        )


def check_expandable_segments(spec: TrainingSpec, is_cuda: bool) -> None:
    """Raise SpecError where expandable segments are requested on a device without CUDA's allocator."""
    if spec.expandable_segments and not is_cuda:
        raise SpecError("expandable_segments", "only CUDA's allocator has them; leave it out on other devices")


def check_device_memory(spec: TrainingSpec, device_type: str) -> None:
    """Raise SpecError for what moves memory between card and host, where the device has none of its own."""
    unpaged = OPTIMIZERS[spec.optimizer].unpaged
    if unpaged is not None and device_type not in HAS_OWN_MEMORY:
        raise SpecError(
            "optimizer", f"{spec.optimizer} needs a CUDA or XPU device: {device_type} pages nothing; take {unpaged}"
        )
    others = {
        "offload_activations": "gradient_checkpointing saves activations there",
        "offload_optimizer": "adafactor keeps less state",
    }
    for name, other in others.items():
        if getattr(spec, name) and device_type not in HAS_OWN_MEMORY:
            reason = f"needs a CUDA or XPU device: what {device_type} computes with is in the host's memory already"
            raise SpecError(name, f"{reason}; {other}")


def check_device_name(device: str) -> None:
    """Raise SpecError for a name that no device has."""
    if not DEVICE_NAMES.fullmatch(device):
        is_gpu = device.lower().startswith("gpu")
        meant = "did you mean cuda? Offered: " if is_gpu else ""
        raise SpecError("device", f"{device[:80]!r} is not a device; {meant}auto, cuda, cuda:N, xpu, xpu:N, mps or cpu")


def check_training(spec: TrainingSpec) -> None:
    """Raise SpecError for a setting that the model lacks, or other settings exclude."""
    check_device_name(spec.device)
    if not spec.device.startswith(("cuda", "auto")):
        check_precision(spec.precision, spec.device, None)
    workload, defaults = spec.workload, {each.name: each.default for each in fields(spec)}
    for name, why in lacking(workload).items():
        if getattr(spec, name) != defaults[name]:
            raise SpecError(name, f"{workload.id} {why}")
    low, high = workload.input_sizes
    if not low <= spec.input_size <= high:
        raise SpecError(workload.input_field, f"{workload.id} takes {low} to {high}")
    if spec.input_size % workload.input_multiple_of:
        raise SpecError(workload.input_field, f"{workload.id} takes multiples of {workload.input_multiple_of}")
    for name in ("clip_grad_norm", "ema"):
        if getattr(spec, name) and spec.optimizer == "none":
            raise SpecError(name, "is part of the optimizer step, and optimizer none makes none")
    if spec.gradients == FREED:
        _check_freed_gradients(spec)
    if spec.offload_optimizer:
        _check_offloaded_state(spec)
    check_expandable_segments(spec, spec.device.startswith(("cuda", "auto")))
    if spec.device != "auto":
        check_device_memory(spec, spec.device.partition(":")[0])
    check_adapters(spec)
    if spec.lora_targets in TARGETS and spec.lora_targets != ALL_LINEAR and workload.architecture == "cnn":
        raise SpecError("lora_targets", f"{workload.id} has no attention; leave it out, or name its layers")
    if spec.lora_variant == DORA and spec.load_in_8bit:
        raise SpecError("lora_variant", "dora is not offered on 8-bit base weights; take 4-bit ones, plain or rslora")
    if spec.lora_weights == BF16 and spec.precision != PURE_BF16:
        raise SpecError(
            "lora_weights", f"{BF16} needs precision {PURE_BF16}; with {spec.precision} the model's own type is fp32"
        )
    if spec.attention != "auto":
        _check_attention(spec)
    if spec.frozen_blocks is not None:
        _check_frozen_blocks(spec.frozen_blocks, spec)
    _check_loop(spec)
    check_ranks(spec)


def lacking(workload: Workload) -> dict[str, str]:
    """Return the settings that a model has no use for, which stay as by default; each with why."""
    is_language_model, is_convolutional = workload.task == "text-generation", workload.architecture == "cnn"
    uses = {
        "image_size" if workload.is_text else "sequence_length": (
            False,
            f"has no such setting; it takes {workload.input_field}",
        ),
        "gradient_checkpointing": (workload.has_gradient_checkpointing, "has no gradient checkpointing"),
        "frozen_blocks": (workload.block_count, "is not one stack of blocks: which come first is not defined"),
        "channels_last": (is_convolutional, "is no convolutional network"),
        "lora_rank": (
            workload.library == "transformers",
            "is no model of transformers: peft does not know its linear layers",
        ),
        **dict.fromkeys(
            ("load_in_4bit", "load_in_8bit"),
            (not is_convolutional, "has no linear layers but its head; leave it out"),
        ),
        "four_bit_output_layer": (is_language_model, "is no language model: its head is trained"),
        "sequences": (is_language_model, "is no language model; texts of others have a mask already"),
        **dict.fromkeys(
            ("loss_chunk_tokens", "half_precision_loss", "liger_loss"),
            (is_language_model, "is no language model: its logits are small"),
        ),
        "without_cache": (workload.has_cache, "is no decoder of transformers: it fills no cache"),
        "mode": (workload.has_eval_loss, "has no loss in eval mode; train"),
        "pretrained": (workload.huggingface_id, "has no pretrained weights on the hub"),
    }
    return {name: why for name, (has_use, why) in uses.items() if not has_use}


def _check_freed_gradients(spec: TrainingSpec) -> None:
    """Raise SpecError for what needs all gradients at one time: the loss's scaling, their norm, their sum."""
    if spec.optimizer == "none":
        raise SpecError("gradients", f"{FREED} ones are freed by each weight's optimizer; take an optimizer")
    if spec.precision == "fp16":
        raise SpecError("gradients", f"fp16 scales the loss by all gradients, none may be {FREED} before; take bf16")
    if spec.clip_grad_norm:
        raise SpecError("clip_grad_norm", f"needs the norm of all gradients: leave it out, or keep {FREED} gradients")
    if spec.accumulation_steps > 1:
        raise SpecError("accumulation_steps", f"must be 1 with {FREED} gradients, which cannot be added up")
    if spec.zero_grad != BEFORE_FORWARD:
        raise SpecError("zero_grad", f"must be {BEFORE_FORWARD} with {FREED} gradients, of which none is left to zero")


def _check_offloaded_state(spec: TrainingSpec) -> None:
    """Raise SpecError for an optimizer without state, or whose state no loop moves by itself."""
    optimizer = OPTIMIZERS[spec.optimizer]
    if optimizer.library != "torch":
        others = "paged-adamw-8bit and paged-adamw-32bit move theirs"
        raise SpecError("offload_optimizer", f"is for those of torch.optim, not {spec.optimizer}; {others}")
    if spec.optimizer in ("none", "sgd"):
        raise SpecError("offload_optimizer", f"optimizer {spec.optimizer} keeps no state; leave it out")
    if spec.precision == "fp16":
        raise SpecError("offload_optimizer", "fp16 skips a step of all weights, here each has its own; take bf16")


def _check_frozen_blocks(count: int, spec: TrainingSpec) -> None:
    workload = spec.workload
    if count > workload.block_count:
        raise SpecError("frozen_blocks", f"{workload.id} has {workload.block_count}; that many train its head alone")
    if spec.lora_rank is not None:
        raise SpecError("frozen_blocks", "must be empty with a LoRA rank, which freezes all weights but the adapters")


def _check_attention(spec: TrainingSpec) -> None:
    offered = ("auto", *spec.workload.attentions)
    if spec.attention not in offered:
        raise SpecError("attention", f"{spec.workload.id} has no {spec.attention}; it takes {', '.join(offered)}")
    if spec.attention != FLASH:
        return
    if not spec.device.startswith(("cuda", "auto")):
        raise SpecError("attention", f"{FLASH} needs a CUDA device, not {spec.device}")
    if spec.precision not in HALF_PRECISIONS:
        raise SpecError("attention", f"{FLASH} needs half precision: {', '.join(HALF_PRECISIONS)}")


def _check_loop(spec: TrainingSpec) -> None:
    if spec.loss_chunk_logits != KEPT and spec.loss_chunk_tokens is None:
        raise SpecError("loss_chunk_logits", "needs a loss in chunks: give loss_chunk_tokens too")
    if spec.liger_loss:
        _check_liger_loss(spec)
    if spec.loss_chunk_tokens is not None and spec.torch_compile:
        raise SpecError("loss_chunk_tokens", "calls parts of the model, and torch.compile the whole; leave one out")
    if spec.half_precision_loss and spec.precision != PURE_BF16:
        raise SpecError("half_precision_loss", f"needs precision {PURE_BF16}; with {spec.precision} a loss is fp32")


def _check_liger_loss(spec: TrainingSpec) -> None:
    if not spec.device.startswith(("cuda", "auto")):
        raise SpecError("liger_loss", f"needs a CUDA device, not {spec.device}; give loss_chunk_tokens in its place")
    for name in ("loss_chunk_tokens", "half_precision_loss", "torch_compile"):
        if getattr(spec, name):
            raise SpecError("liger_loss", f"does not go with {name}; leave one out")
