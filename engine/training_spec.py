"""What is trained: a model of the catalogue, on a device, with the settings that change what a step computes.

Each field is declared with its label, choices and bounds; command line, form, filters, comparison and JSON Schema read
them here.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Self

from .catalog import WORKLOADS, Workload, workload_ids
from .catalog.from_config import CONFIG, TASKS, read_config
from .errors import SpecError
from .settings.optimizers import OPTIMIZERS
from .settings.setting import Role, setting
from .settings.spec_checks import given_fields

PURE_BF16 = "bf16-pure"
PRECISIONS = {
    "fp32": "fp32",
    "tf32": "tf32 (matrix products in TensorFloat-32)",
    "bf16": "bf16 autocast",
    "fp16": "fp16 autocast with gradient scaling",
    PURE_BF16: "pure bf16 (weights, gradients and optimizer too)",
}
OPTIMIZER_LABELS = {name: optimizer.label for name, optimizer in OPTIMIZERS.items()}
FLASH = "flash_attention_2"
ATTENTIONS = {
    "auto": "the model's own choice",
    "eager": "eager (plain matrix products)",
    "sdpa": "sdpa (PyTorch's fused kernels)",
    FLASH: "FlashAttention 2 (package flash-attn)",
}
FULL, PADDED, PACKED = "full", "padded", "packed"
SEQUENCES = {
    FULL: "full (one in each row, of the whole length)",
    PADDED: "padded (one in each row, of unequal lengths, with an attention mask)",
    PACKED: "packed (several in each row, separated by their positions)",
}
HALF_PRECISIONS = ("bf16", "fp16", PURE_BF16)
MODES = {"train": "train (dropout active)", "eval": "eval (dropout off)"}
PARAMETERS_MAX = 10**12
"""The largest number of parameters that a config may describe: a larger model is out of reach for one device."""
AMPERE = (8, 0)
"""The first compute capability with bfloat16 and TensorFloat-32."""
NEEDS_AMPERE = ("tf32", "bf16", PURE_BF16)
DEVICE_KINDS = ("cuda", "xpu", "mps", "cpu")
DEVICE_NAMES = re.compile(r"auto|(?:cuda|xpu)(?::\d{1,3})?|mps(?::0)?|cpu", re.ASCII)

_BYTES_PER_PARAMETER, _BYTES_PER_HALF = 4, 2  # weights, gradients and state stay fp32 under autocast
_BYTES_IN_4_BITS = 0.5  # bytes per parameter, at least: embeddings and the output layer are not quantized


@dataclass(frozen=True, slots=True)
class TrainingSpec:
    """One training. `None` means the workload's default. It checks nothing itself: `RunSpec` does."""

    model: str = setting(
        Role.WORKLOAD,
        "Model",
        "What is trained: an id of /api/v1/models/, or config, with a config of your own.",
        choices={w: w for w in (*workload_ids(), CONFIG)},
    )
    device: str = setting(
        Role.PLACE,
        "Device",
        "Where: auto (the best device), a kind (cuda, xpu, mps: any of it), or one device such as cuda:1.",
        default="auto",
    )
    precision: str = setting(
        Role.TRAINING,
        "Precision",
        "Precision of the forward and backward pass. Weights and optimizer state stay in fp32, except with bf16-pure.",
        default="fp32",
        hint="Half precision saves activations. Weights and optimizer state stay in fp32, except with pure bf16.",
        choices=PRECISIONS,
    )
    optimizer: str = setting(
        Role.TRAINING,
        "Optimizer",
        "Optimizer of the training step. none runs forward and backward only.",
        default="adamw",
        hint="Adam and AdamW keep two copies of the weights more, 8-bit AdamW half a copy, SGD and Adafactor none.",
        choices=OPTIMIZER_LABELS,
    )
    accumulation_steps: int = setting(
        Role.TRAINING,
        "Gradient accumulation",
        "Micro-batches per optimizer step. The batch size is that of one micro-batch; speeds count all of them.",
        default=1,
        hint="Micro-batches per optimizer step. The batch size is that of one of them.",
        bounds=(1, 1024),
        metavar="N",
    )
    clip_grad_norm: bool = setting(
        Role.TRAINING,
        "Gradient clipping",
        "Clip the gradients by their total norm before each step. The limit changes neither memory nor speed.",
        default=False,
        hint="By the total norm (clip_grad_norm_). The limit itself changes neither memory nor speed.",
        is_rare=True,
    )
    ema: bool = setting(
        Role.TRAINING,
        "EMA of the weights",
        "Keep an exponential moving average of the weights. It is updated after each optimizer step.",
        default=False,
        hint="Exponential moving average: one more copy of the trained weights, updated after each step.",
    )
    lora_rank: int | None = setting(
        Role.TRAINING,
        "LoRA rank",
        "Train LoRA adapters of this rank only. "
        "Every linear layer gets an adapter (peft). Left out: all weights are trained.",
        default=None,
        hint="With a rank, only small adapters and a new head are trained. Empty: all weights are.",
        bounds=(1, 1024),
        metavar="N",
    )
    load_in_4bit: bool = setting(
        Role.TRAINING,
        "4-bit base weights",
        "Keep the frozen base weights in 4 bits (QLoRA). bitsandbytes, NF4, double quantization.",
        default=False,
        hint="Known as QLoRA. Needs a LoRA rank and bitsandbytes. Computes in bf16, or in fp16 with that precision.",
    )
    frozen_blocks: int | None = setting(
        Role.TRAINING,
        "Frozen blocks",
        "Freeze the embeddings and this many first blocks. With all of them, only the head is trained. Left out: none.",
        default=None,
        hint="BERT has 12: with 6, the embeddings and 6 layers are frozen; with 12, all but the head. Empty: none.",
        bounds=(1, 1000),
        metavar="N",
    )
    attention: str = setting(
        Role.TRAINING,
        "Attention",
        "Attention implementation of transformers. auto is sdpa where the model has it, else eager.",
        default="auto",
        hint="Eager stores the attention matrix. FlashAttention 2 needs a GPU, half precision and its package.",
        choices=ATTENTIONS,
    )
    gradient_checkpointing: bool = setting(
        Role.TRAINING,
        "Gradient checkpointing",
        "Keep fewer activations; compute them again in the backward pass.",
        default=False,
        hint="Trades speed for memory.",
    )
    torch_compile: bool = setting(
        Role.TRAINING,
        "torch.compile",
        "Compile the model for each batch size. Each has its own process; compile time is in no step time.",
        default=False,
        hint="Measured only, not estimated. Every size is compiled again, so a run takes minutes longer.",
    )
    expandable_segments: bool = setting(
        Role.TRAINING,
        "Expandable segments",
        "Let CUDA's allocator grow its segments. PYTORCH_ALLOC_CONF=expandable_segments:True.",
        default=False,
        hint="CUDA only. Leaves less memory reserved and unused; the step itself is the same.",
        is_rare=True,
    )
    channels_last: bool = setting(
        Role.TRAINING,
        "Channels last",
        "Store images and convolution weights with the channels last. memory_format=torch.channels_last.",
        default=False,
        hint="For convolutional networks: the layout that tensor cores take in half precision.",
        is_rare=True,
    )
    mode: str = setting(
        Role.TRAINING,
        "Mode",
        "Dropout on (train) or off (eval). Both run the backward pass.",
        default="train",
        hint="Dropout stores masks, so train takes more memory.",
        choices=MODES,
        is_rare=True,
    )
    sequence_length: int | None = setting(
        Role.WORKLOAD,
        "Sequence length",
        "Tokens per sample of a text model. Left out: the model's own.",
        default=None,
        bounds=(1, 1_000_000),
        metavar="N",
    )
    image_size: int | None = setting(
        Role.WORKLOAD,
        "Image size",
        "Side of the square image, in pixels. For image models. Left out: the model's own.",
        default=None,
        bounds=(1, 100_000),
        metavar="N",
    )
    sequences: str = setting(
        Role.TRAINING,
        "Sequences",
        "How texts fill the rows of a language model's batch. A sample is a row of the sequence length.",
        default=FULL,
        hint="For language models. Padded rows take as long as full ones; packed rows add a quadratic mask.",
        choices=SEQUENCES,
    )
    pretrained: bool = setting(
        Role.TRAINING,
        "Pretrained weights",
        "Load the hub's weights in place of random ones. Memory and speed are the same, but they are downloaded.",
        default=False,
        is_rare=True,
        is_in_form=False,
    )

    config: str | None = setting(
        Role.WORKLOAD,
        "Config",
        "The config.json of a Hugging Face model, as an object or as text, with the model config; weights are random.",
        default=None,
        is_in_form=False,
    )
    task: str | None = setting(
        Role.WORKLOAD,
        "Task of the config",
        f"What a model of that config is trained for: {', '.join(TASKS)}.",
        default=None,
        is_in_form=False,
    )
    config_parameters: int | None = setting(
        Role.WORKLOAD,
        "Parameters of the config",
        "Counted by the engine when the run starts. Left out: not counted yet.",
        default=None,
        bounds=(1, PARAMETERS_MAX),
        is_in_form=False,
    )

    @property
    def workload(self) -> Workload:
        if self.config is None:
            return WORKLOADS[self.model]
        return read_config(self.config, self.task).workload(self.config_parameters)

    @property
    def input_size(self) -> int:
        """Tokens per sample, or the side of the square image in pixels."""
        size = self.sequence_length if self.workload.is_text else self.image_size
        return self.workload.default_input_size if size is None else size

    @property
    def weights_bytes(self) -> int:
        if self.load_in_4bit:
            return int(_BYTES_IN_4_BITS * self.workload.parameter_count)
        per_parameter = _BYTES_PER_HALF if self.precision == PURE_BF16 else _BYTES_PER_PARAMETER
        return per_parameter * self.workload.parameter_count

    @property
    def fixed_bytes(self) -> int:
        """Return what every step holds at one time at any batch size: a floor for the memory limit.

        These are the weights, their average if there is one, and all gradients when the backward pass ends, whatever
        the optimizer and the mode; the optimizer then adds its state. Where some weights are frozen, only the weights
        are known.
        """
        if self.lora_rank is not None or self.frozen_blocks is not None:
            return self.weights_bytes
        return int((2 + OPTIMIZERS[self.optimizer].state_copies + self.ema) * self.weights_bytes)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Build a spec from JSON. Raises SpecError, naming the field."""
        given = given_fields(cls, data)
        if "model" not in given and "config" not in given:
            raise SpecError("model", f"is required; one of {', '.join(workload_ids())}")
        return cls(**{"model": CONFIG, **given})


def take_config(spec: TrainingSpec) -> None:
    """Replace a spec's config by its normalized text, and its model by the id that equal configs share.

    Raises SpecError for a config that is refused, and for a task or a count of parameters without a config.
    """
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
    least = ".".join(map(str, AMPERE))
    is_older = compute_capability is not None and compute_capability < AMPERE
    if precision == "tf32" and (compute_capability is None or is_older):
        raise SpecError("precision", f"tf32 needs a CUDA GPU of compute capability {least} or later, not {device_name}")
    if precision in NEEDS_AMPERE and is_older:
        raise SpecError(
            "precision",
            f"{precision} needs compute capability {least} or later; {device_name} has {compute_capability}",
        )


def check_expandable_segments(spec: TrainingSpec, is_cuda: bool) -> None:
    """Raise SpecError where expandable segments are requested on a device without CUDA's allocator."""
    if spec.expandable_segments and not is_cuda:
        raise SpecError("expandable_segments", "only CUDA's allocator has them; leave it out on other devices")


def check_device_name(device: str) -> None:
    """Raise SpecError for a name that no device has."""
    if not DEVICE_NAMES.fullmatch(device):
        raise SpecError("device", f"{device[:80]!r} is not a device; auto, cuda, cuda:N, xpu, xpu:N, mps or cpu")


def check_training(spec: TrainingSpec) -> None:
    """Raise SpecError for a setting that the model does not have, or that other settings exclude."""
    check_device_name(spec.device)
    if not spec.device.startswith(("cuda", "auto")):
        check_precision(spec.precision, spec.device, None)
    workload = spec.workload
    other = "image_size" if workload.is_text else "sequence_length"
    if getattr(spec, other) is not None:
        raise SpecError(other, f"{workload.id} has no such setting; it takes {workload.input_field}")
    low, high = workload.input_sizes
    if not low <= spec.input_size <= high:
        raise SpecError(workload.input_field, f"{workload.id} takes {low} to {high}")
    if spec.input_size % workload.input_multiple_of:
        raise SpecError(workload.input_field, f"{workload.id} takes multiples of {workload.input_multiple_of}")
    if spec.gradient_checkpointing and not workload.has_gradient_checkpointing:
        raise SpecError("gradient_checkpointing", f"{workload.id} has no gradient checkpointing")
    for name in ("clip_grad_norm", "ema"):
        if getattr(spec, name) and spec.optimizer == "none":
            raise SpecError(name, "is part of the optimizer step, and optimizer none makes none")
    check_expandable_segments(spec, spec.device.startswith(("cuda", "auto")))
    if spec.lora_rank is not None and workload.library != "transformers":
        raise SpecError("lora_rank", f"{workload.id} is no model of transformers: peft does not know its linear layers")
    if spec.load_in_4bit and spec.lora_rank is None:
        raise SpecError("load_in_4bit", "needs a LoRA rank: weights of 4 bits are not trained, only adapters are")
    if spec.load_in_4bit and workload.architecture == "cnn":
        raise SpecError("load_in_4bit", f"{workload.id} has no linear layers but its head; leave it out")
    if spec.attention != "auto":
        _check_attention(spec)
    if spec.sequences != FULL and workload.task != "text-generation":
        raise SpecError("sequences", f"{workload.id} is no language model; texts of others have a mask already")
    if spec.channels_last and workload.architecture != "cnn":
        raise SpecError("channels_last", f"{workload.id} is no convolutional network")
    if spec.frozen_blocks is not None:
        _check_frozen_blocks(spec.frozen_blocks, spec)
    if spec.mode == "eval" and not workload.has_eval_loss:
        raise SpecError("mode", f"{workload.id} has no loss in eval mode; train")
    if spec.pretrained and workload.huggingface_id is None:
        raise SpecError("pretrained", f"{workload.id} has no pretrained weights on the hub")


def _check_frozen_blocks(count: int, spec: TrainingSpec) -> None:
    workload = spec.workload
    if not workload.block_count:
        raise SpecError("frozen_blocks", f"{workload.id} is not one stack of blocks: which come first is not defined")
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
