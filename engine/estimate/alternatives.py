"""PURE: which settings could be changed so that a batch size fits, the one with the lowest cost to the user first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import chain, combinations
from typing import Any

from ..settings.adapter_settings import AUTO, DORA, DOUBLE, PLAIN
from ..settings.loop_settings import RECOMPUTED, RELEASED
from ..settings.lora_targets import TARGETS
from ..settings.optimizers import OPTIMIZERS
from ..settings.step_settings import BEFORE_FORWARD, FREED, PACKED
from ..spec import DEFAULTS, SETTINGS, RunSpec

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
ValuesOf = Callable[[RunSpec], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A setting that saves memory, with values to try, the mildest first. `needs` is changed with it if not set."""

    setting: str
    cost: Cost
    values: ValuesOf
    needs: str | None = None


def _value(value: Any, when: Callable[[RunSpec], object] = lambda _: True) -> ValuesOf:
    return lambda spec: [value] if when(spec) else []


def _fractions_of_input(name: str) -> ValuesOf:

    def sizes(spec: RunSpec) -> list[int]:
        workload = spec.workload
        if workload.input_field != name:
            return []
        step = workload.input_multiple_of
        return [size for part in (2, 4) if (size := spec.input_size // part // step * step) >= workload.input_sizes[0]]

    return sizes


def _lighter_optimizers(spec: RunSpec) -> list[str]:
    """Return optimizers with less state than the requested one; without an optimizer there is nothing to save."""
    state = OPTIMIZERS[spec.optimizer].state_copies
    return [name for name in ("adafactor", "sgd") if OPTIMIZERS[name].state_copies < state]


def _paged_optimizers(spec: RunSpec) -> list[str]:
    usual = "adamw" if spec.optimizer == "adamw-fused" else spec.optimizer
    return [name for name, each in OPTIMIZERS.items() if each.unpaged == usual and spec.lora_rank is None]


def _fewer_adapters(spec: RunSpec) -> list[str]:
    order = list(TARGETS)
    if spec.lora_rank is None or spec.lora_targets not in order:
        return []
    return order[order.index(spec.lora_targets) + 1 :][:1]


def _double_quantisation(spec: RunSpec) -> list[str]:
    return [] if spec.four_bit_format.endswith(DOUBLE) else [f"{spec.four_bit_format}{DOUBLE}"]


def _fills_a_cache(spec: RunSpec) -> bool:
    """Whether a cache can be switched off: with checkpointing or packed rows no decoder fills one."""
    return spec.workload.has_cache and not spec.gradient_checkpointing and spec.sequences != PACKED


def _has_whole_logits(spec: RunSpec) -> bool:
    is_long = spec.workload.task == "text-generation" and spec.input_size > _CHUNK_TOKENS
    return is_long and spec.loss_chunk_tokens is None


def _has_state(spec: RunSpec) -> bool:
    """Whether the optimizer has state worth moving: that of adapters is small."""
    return OPTIMIZERS[spec.optimizer].state_copies >= 1 and spec.lora_rank is None


_CHUNK_TOKENS = 128
"""The size of the chunks in litgpt's scripts."""
_WITH_8_BIT = ("adamw", "adamw-fused")
ALTERNATIVES = (
    Alternative("outputs", Cost.ONE_LINE, _value(RELEASED, lambda spec: spec.workload.has_large_outputs)),
    Alternative("without_cache", Cost.ONE_LINE, _value(True, _fills_a_cache)),
    Alternative("zero_grad", Cost.ONE_LINE, _value(BEFORE_FORWARD)),
    Alternative("loss_chunk_tokens", Cost.CHUNKED_LOSS, _value(_CHUNK_TOKENS, _has_whole_logits)),
    Alternative(
        "loss_chunk_logits",
        Cost.RECOMPUTED_LOGITS,
        _value(RECOMPUTED, lambda spec: _has_whole_logits(spec) or spec.loss_chunk_tokens),
        needs="loss_chunk_tokens",
    ),
    Alternative("attention", Cost.OTHER_KERNEL, _value("sdpa", lambda spec: spec.attention == "eager")),
    Alternative(
        "gradients",
        Cost.STEP_IN_BACKWARD,
        _value(FREED, lambda spec: spec.optimizer != "none" and spec.lora_rank is None),  # adapters' are small
    ),
    Alternative("gradient_checkpointing", Cost.RECOMPUTATION, _value(True)),
    Alternative("optimizer", Cost.PAGED_STATE, _paged_optimizers),
    Alternative("offload_optimizer", Cost.OFFLOADED_STATE, _value(True, _has_state)),
    Alternative("offload_activations", Cost.OFFLOAD, _value(True)),
    Alternative("precision", Cost.ROUNDING, _value("bf16", lambda spec: spec.precision in ("fp32", "tf32"))),
    Alternative("optimizer", Cost.ROUNDED_STATE, _value("adamw-8bit", lambda spec: spec.optimizer in _WITH_8_BIT)),
    Alternative("optimizer", Cost.OTHER_UPDATES, _lighter_optimizers),
    Alternative("sequence_length", Cost.SMALLER_INPUTS, _fractions_of_input("sequence_length")),
    Alternative("image_size", Cost.SMALLER_INPUTS, _fractions_of_input("image_size")),
    Alternative("lora_dropout", Cost.NO_ADAPTER_DROPOUT, _value(0.0)),
    Alternative("lora_variant", Cost.FEWER_ADAPTERS, _value(PLAIN, lambda spec: spec.lora_variant == DORA)),
    Alternative("four_bit_compute", Cost.ROUNDING, _value(AUTO, lambda spec: spec.four_bit_compute == "fp32")),
    Alternative("four_bit_format", Cost.ROUNDED_SCALES, _double_quantisation),
    Alternative(
        "four_bit_output_layer",
        Cost.ROUNDED_WEIGHTS,
        _value(True, lambda spec: spec.load_in_4bit and spec.workload.task == "text-generation"),
    ),
    Alternative("lora_targets", Cost.FEWER_ADAPTERS, _fewer_adapters),
    Alternative("lora_rank", Cost.OTHER_WEIGHTS, _value(16, lambda spec: spec.lora_rank is None)),
    Alternative("load_in_4bit", Cost.ROUNDED_WEIGHTS, _value(True), needs="lora_rank"),
)


def single_changes(spec: RunSpec) -> list[Changes]:
    """Return every change to another value, the cheapest first, each after one that it needs: 4 bits need LoRA."""
    return sorted((changes for each in ALTERNATIVES for changes in _changes_to(each, spec)), key=costs_of)


def _changes_to(alternative: Alternative, spec: RunSpec) -> list[Changes]:
    firsts: list[Changes] = [()]
    if (needs := alternative.needs) is not None and getattr(spec, needs) == DEFAULTS[needs]:
        firsts = [changes for each in ALTERNATIVES if each.setting == needs for changes in _changes_to(each, spec)]
    values = [value for value in alternative.values(spec) if value != getattr(spec, alternative.setting)]
    return [(*first, Change(alternative.setting, value, alternative.cost)) for first in firsts for value in values]


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
