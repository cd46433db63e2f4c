"""PURE: which settings could be changed so that a batch size fits, the one with the lowest cost to the user first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import chain, combinations
from typing import Any

from ..settings.adapter_settings import AUTO, DORA, DOUBLE, PLAIN
from ..settings.loop_settings import RECOMPUTED, RELEASED
from ..settings.lora_targets import TARGETS
from ..settings.optimizers import OPTIMIZERS
from ..settings.spec import DEFAULTS, SETTINGS, RunSpec
from ..settings.step_settings import BEFORE_FORWARD, FREED, PACKED

ORDER = "Ordered by how little they change the training."
"""Explains the order of `Cost`: how much the training differs from the one that was requested."""


class Cost(IntEnum):
    """What a change costs, the lowest cost first, with what that means for the training."""

    text: str

    def __new__(cls, text: str) -> Cost:
        cost = int.__new__(cls, len(cls.__members__))
        cost._value_, cost.text = int(cost), text
        return cost

    ONE_LINE = "the same training, with one line of its loop changed"
    CHUNKED_LOSS = "the same gradients, from a loss that is added up over chunks of tokens"
    SMALLER_PIECES = "the same optimizer step, from gradients added up over smaller micro-batches"
    OTHER_KERNEL = "the same gradients, from a kernel that stores no attention weights"
    STEP_IN_BACKWARD = "the same steps, each during the backward pass; gradients cannot be clipped or added up"
    RECOMPUTED_LOGITS = "the same gradients, but the logits of each chunk are computed twice"
    RECOMPUTATION = "the same gradients, but activations are computed twice"
    PAGED_STATE = (
        "the same optimizer; where the GPU is full its state is copied from the host and back in each step; "
        "it needs bitsandbytes"
    )
    OFFLOADED_STATE = "the same optimizer; its state is copied from the host and back, weight by weight"
    OFFLOAD = "the same gradients, but activations are copied to the host and back in each step"
    ROUNDING = "forward and backward pass are rounded to half precision"
    ROUNDED_STATE = "the same optimizer, with its state rounded to 8 bits; it needs bitsandbytes"
    OTHER_UPDATES = "another optimizer: its learning rate has to be found again"
    SMALLER_INPUTS = "the model sees less of each sample"
    NO_ADAPTER_DROPOUT = "adapters are trained without dropout: on little data they overfit sooner"
    FEWER_ADAPTERS = "fewer or simpler adapters, which often learn less"
    ROUNDED_SCALES = "the scales of the 4-bit weights are rounded to 8 bits"
    OTHER_WEIGHTS = "only adapters are trained, not the weights"
    ROUNDED_WEIGHTS = "the frozen linear layers are rounded to 4 bits; it needs bitsandbytes"


BATCH_NORM_NOTE = "batch norm then sees only a micro-batch"


@dataclass(frozen=True, slots=True)
class Change:
    setting: str
    value: Any
    cost: Cost

    @property
    def label(self) -> str:
        """Write "gradient checkpointing", "bf16 precision", "LoRA rank 16"."""
        return SETTINGS[self.setting].describe(self.value)


Changes = tuple[Change, ...]
_NEEDS = {"loss_chunk_logits": "loss_chunk_tokens", "load_in_4bit": "lora_rank"}
"""The setting that is changed with another where it is not set."""
_CHUNK_TOKENS = 128
"""The size of the chunks in litgpt's scripts."""


def _offered(spec: RunSpec) -> list[tuple[str, Cost, Sequence[Any], object]]:
    """Return each setting that saves memory: its cost, values to try, the mildest first, and whether it is offered."""
    workload, has_adapters, is_in_4_bits = spec.workload, spec.lora_rank is not None, spec.load_in_4bit
    is_language_model = workload.task == "text-generation"
    # with checkpointing or packed rows no decoder fills a cache
    fills_cache = workload.has_cache and not spec.gradient_checkpointing and spec.sequences != PACKED
    has_whole_logits = is_language_model and spec.input_size > _CHUNK_TOKENS and spec.loss_chunk_tokens is None
    state = OPTIMIZERS[spec.optimizer].state_copies
    usual = "adamw" if spec.optimizer == "adamw-fused" else spec.optimizer
    paged = [name for name, each in OPTIMIZERS.items() if each.unpaged == usual]
    lighter = [name for name in ("adafactor", "sgd") if OPTIMIZERS[name].state_copies < state]
    step, least = workload.input_multiple_of, workload.input_sizes[0]
    smaller = [size for part in (2, 4) if (size := spec.input_size // part // step * step) >= least]
    targets = list(TARGETS)
    fewer = targets[targets.index(spec.lora_targets) + 1 :][:1] if spec.lora_targets in targets else []
    return [
        ("outputs", Cost.ONE_LINE, [RELEASED], workload.has_large_outputs),
        ("without_cache", Cost.ONE_LINE, [True], fills_cache),
        ("zero_grad", Cost.ONE_LINE, [BEFORE_FORWARD], True),
        ("loss_chunk_tokens", Cost.CHUNKED_LOSS, [_CHUNK_TOKENS], has_whole_logits),
        ("loss_chunk_logits", Cost.RECOMPUTED_LOGITS, [RECOMPUTED], has_whole_logits or spec.loss_chunk_tokens),
        ("attention", Cost.OTHER_KERNEL, ["sdpa"], spec.attention == "eager"),
        # gradients and state of adapters are small
        ("gradients", Cost.STEP_IN_BACKWARD, [FREED], spec.optimizer != "none" and not has_adapters),
        ("gradient_checkpointing", Cost.RECOMPUTATION, [True], True),
        ("optimizer", Cost.PAGED_STATE, paged, not has_adapters),
        ("offload_optimizer", Cost.OFFLOADED_STATE, [True], state >= 1 and not has_adapters),
        ("offload_activations", Cost.OFFLOAD, [True], True),
        ("precision", Cost.ROUNDING, ["bf16"], spec.precision in ("fp32", "tf32")),
        ("optimizer", Cost.ROUNDED_STATE, ["adamw-8bit"], spec.optimizer in ("adamw", "adamw-fused")),
        ("optimizer", Cost.OTHER_UPDATES, lighter, True),
        (workload.input_field, Cost.SMALLER_INPUTS, smaller, True),
        ("lora_dropout", Cost.NO_ADAPTER_DROPOUT, [0.0], True),
        ("lora_variant", Cost.FEWER_ADAPTERS, [PLAIN], spec.lora_variant == DORA),
        ("four_bit_compute", Cost.ROUNDING, [AUTO], spec.four_bit_compute == "fp32"),
        (
            "four_bit_format",
            Cost.ROUNDED_SCALES,
            [f"{spec.four_bit_format}{DOUBLE}"],
            DOUBLE not in spec.four_bit_format,
        ),
        ("four_bit_output_layer", Cost.ROUNDED_WEIGHTS, [True], is_in_4_bits and is_language_model),
        ("lora_targets", Cost.FEWER_ADAPTERS, fewer, has_adapters),
        ("lora_rank", Cost.OTHER_WEIGHTS, [16], not has_adapters),
        ("load_in_4bit", Cost.ROUNDED_WEIGHTS, [True], True),
    ]


def single_changes(spec: RunSpec) -> list[Changes]:
    """Return every change to another value, the cheapest first, each after one that it needs: 4 bits need LoRA."""
    offered = [
        Change(setting, value, cost)
        for setting, cost, values, is_offered in _offered(spec)
        for value in values
        if is_offered and value != getattr(spec, setting)
    ]
    firsts = {
        setting: [(each,) for each in offered if each.setting == needs]
        for setting, needs in _NEEDS.items()
        if getattr(spec, needs) == DEFAULTS[needs]
    }
    return sorted(((*first, each) for each in offered for first in firsts.get(each.setting, [()])), key=costs_of)


def lines_together(singles: Sequence[Changes]) -> list[Changes]:
    """Return all free changes of the loop together: there is no reason to make only one."""
    lines = [change for changes in singles for change in changes if change.cost is Cost.ONE_LINE]
    return [tuple(lines)] if len(lines) > 1 else []


def together(singles: Sequence[Changes], count: int) -> list[Changes]:
    """Return so many changes to different settings at once; those whose costliest change costs least come first."""
    several = (parts for parts in combinations(singles, count) if len(set(map(_axis, parts))) == count)
    return sorted((tuple(chain(*parts)) for parts in several), key=costs_of)


def whole_grid(singles: Sequence[Changes]) -> list[Changes]:
    """Return all combinations of one change per setting; those of `_NOT_IN_GRID` go with all, and would double them."""
    shown = [each for each in singles if each[0].cost not in _NOT_IN_GRID]
    grid = chain(*(together(shown, count) for count in range(1, len(set(map(_axis, shown))) + 1)))
    return sorted(grid, key=lambda changes: (len(changes), costs_of(changes)))


_NOT_IN_GRID = frozenset(
    {
        *(Cost.ONE_LINE, Cost.CHUNKED_LOSS, Cost.STEP_IN_BACKWARD, Cost.RECOMPUTED_LOGITS),
        *(Cost.PAGED_STATE, Cost.OFFLOADED_STATE, Cost.OFFLOAD),
    }
)


def _axis(single: Changes) -> str:
    """Return the setting that a combination changes once: LoRA comes alone or with 4 bits, not in both ways."""
    return single[0].setting


def costs_of(changes: Changes) -> tuple[int, ...]:
    """Return the costs, the highest first: changes are ordered by this."""
    return tuple(sorted((change.cost for change in changes), reverse=True))


def label_of(changes: Changes) -> str:
    return " + ".join(change.label for change in changes) or "as requested"


def changed(spec: RunSpec, changes: Changes) -> RunSpec:
    """Return the spec with these changes. Raises SpecError for a setting that the model does not have."""
    return replace(spec, **{change.setting: change.value for change in changes})
