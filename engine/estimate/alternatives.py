"""PURE: which settings could be changed so that a batch size fits, the change with the lowest cost to the user first.

`ALTERNATIVES` has one line for each setting that saves memory. A setting that the model does not have, or that the
card cannot run, is left out with the reason that constructing the spec gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import combinations, product
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
    """What a change costs, the lowest cost first."""

    ONE_LINE = 0
    CHUNKED_LOSS = 1
    SMALLER_PIECES = 2
    OTHER_KERNEL = 3
    STEP_IN_BACKWARD = 4
    RECOMPUTED_LOGITS = 5
    RECOMPUTATION = 6
    PAGED_STATE = 7
    OFFLOADED_STATE = 8
    OFFLOAD = 9
    ROUNDING = 10
    ROUNDED_STATE = 11
    OTHER_UPDATES = 12
    SMALLER_INPUTS = 13
    NO_ADAPTER_DROPOUT = 14
    FEWER_ADAPTERS = 15
    ROUNDED_SCALES = 16
    OTHER_WEIGHTS = 17
    ROUNDED_WEIGHTS = 18


COSTS = {
    Cost.ONE_LINE: "the same training, with one line of its loop changed",
    Cost.CHUNKED_LOSS: "the same gradients, from a loss that is added up over chunks of tokens",
    Cost.SMALLER_PIECES: "the same optimizer step, from gradients added up over smaller micro-batches",
    Cost.OTHER_KERNEL: "the same gradients, from a kernel that stores no attention weights",
    Cost.STEP_IN_BACKWARD: "the same steps, each during the backward pass; gradients cannot be clipped or added up",
    Cost.RECOMPUTED_LOGITS: "the same gradients, but the logits of each chunk are computed twice",
    Cost.RECOMPUTATION: "the same gradients, but activations are computed twice",
    Cost.PAGED_STATE: "the same optimizer; where the GPU is full its state is copied from the host and back in each "
    "step; it needs bitsandbytes",
    Cost.OFFLOADED_STATE: "the same optimizer; its state is copied from the host and back, weight by weight",
    Cost.OFFLOAD: "the same gradients, but activations are copied to the host and back in each step",
    Cost.ROUNDING: "forward and backward pass are rounded to half precision",
    Cost.ROUNDED_STATE: "the same optimizer, with its state rounded to 8 bits; it needs bitsandbytes",
    Cost.OTHER_UPDATES: "another optimizer: its learning rate has to be found again",
    Cost.SMALLER_INPUTS: "the model sees less of each sample",
    Cost.NO_ADAPTER_DROPOUT: "adapters are trained without dropout: on little data they overfit sooner",
    Cost.FEWER_ADAPTERS: "fewer or simpler adapters, which often learn less",
    Cost.ROUNDED_SCALES: "the scales of the 4-bit weights are rounded to 8 bits",
    Cost.OTHER_WEIGHTS: "only adapters are trained, not the weights",
    Cost.ROUNDED_WEIGHTS: "the frozen linear layers are rounded to 4 bits; it needs bitsandbytes",
}
BATCH_NORM_NOTE = "batch norm then sees only a micro-batch"


@dataclass(frozen=True, slots=True)
class Change:
    """One setting with its other value."""

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
    """A setting that saves memory, with the values to try in place of the one requested, the mildest first.

    `needs` is a setting that this one requires: where it is not set, both are changed together.
    """

    setting: str
    cost: Cost
    values: ValuesOf
    needs: str | None = None


def _fixed(*values: Any) -> ValuesOf:
    return lambda _: values


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


def _released(spec: RunSpec) -> list[str]:
    return [RELEASED] if spec.workload.has_cache or spec.workload.task == "image-segmentation" else []


def _without_cache(spec: RunSpec) -> list[bool]:
    """Return whether the cache can be switched off: with checkpointing or packed rows no decoder fills one."""
    is_filled = spec.workload.has_cache and not spec.gradient_checkpointing and spec.sequences != PACKED
    return [True] if is_filled else []


def _chunks(spec: RunSpec) -> list[int]:
    is_long = spec.workload.task == "text-generation" and spec.input_size > _CHUNK_TOKENS
    return [_CHUNK_TOKENS] if is_long and spec.loss_chunk_tokens is None else []


def _freed_gradients(spec: RunSpec) -> list[str]:
    """Return whether gradients can be freed where they are as large as the weights: adapters' are small."""
    return [FREED] if spec.optimizer != "none" and spec.lora_rank is None else []


def _paged_optimizers(spec: RunSpec) -> list[str]:
    usual = "adamw" if spec.optimizer == "adamw-fused" else spec.optimizer
    return [name for name, each in OPTIMIZERS.items() if each.unpaged == usual and spec.lora_rank is None]


def _offloaded_state(spec: RunSpec) -> list[bool]:
    return [True] if OPTIMIZERS[spec.optimizer].state_copies >= 1 and spec.lora_rank is None else []


_CHUNK_TOKENS = 128
"""The size of the chunks in litgpt's scripts."""


def _fewer_adapters(spec: RunSpec) -> list[str]:
    order = list(TARGETS)
    if spec.lora_rank is None or spec.lora_targets not in order:
        return []
    return order[order.index(spec.lora_targets) + 1 :][:1]


def _double_quantisation(spec: RunSpec) -> list[str]:
    return [] if spec.four_bit_format.endswith(DOUBLE) else [f"{spec.four_bit_format}{DOUBLE}"]


def _output_layer(spec: RunSpec) -> list[bool]:
    return [True] if spec.load_in_4bit and spec.workload.task == "text-generation" else []


_WITH_8_BIT = ("adamw", "adamw-fused")
ALTERNATIVES = (
    Alternative("outputs", Cost.ONE_LINE, _released),
    Alternative("without_cache", Cost.ONE_LINE, _without_cache),
    Alternative("zero_grad", Cost.ONE_LINE, _fixed(BEFORE_FORWARD)),
    Alternative("loss_chunk_tokens", Cost.CHUNKED_LOSS, _chunks),
    Alternative(
        "loss_chunk_logits",
        Cost.RECOMPUTED_LOGITS,
        lambda spec: [RECOMPUTED] if _chunks(spec) or spec.loss_chunk_tokens else [],
        needs="loss_chunk_tokens",
    ),
    Alternative("attention", Cost.OTHER_KERNEL, lambda spec: ["sdpa"] if spec.attention == "eager" else []),
    Alternative("gradients", Cost.STEP_IN_BACKWARD, _freed_gradients),
    Alternative("gradient_checkpointing", Cost.RECOMPUTATION, _fixed(True)),
    Alternative("optimizer", Cost.PAGED_STATE, _paged_optimizers),
    Alternative("offload_optimizer", Cost.OFFLOADED_STATE, _offloaded_state),
    Alternative("offload_activations", Cost.OFFLOAD, _fixed(True)),
    Alternative("precision", Cost.ROUNDING, lambda spec: ["bf16"] if spec.precision in ("fp32", "tf32") else []),
    Alternative("optimizer", Cost.ROUNDED_STATE, lambda s: ["adamw-8bit"] if s.optimizer in _WITH_8_BIT else []),
    Alternative("optimizer", Cost.OTHER_UPDATES, _lighter_optimizers),
    Alternative("sequence_length", Cost.SMALLER_INPUTS, _fractions_of_input("sequence_length")),
    Alternative("image_size", Cost.SMALLER_INPUTS, _fractions_of_input("image_size")),
    Alternative("lora_dropout", Cost.NO_ADAPTER_DROPOUT, _fixed(0.0)),
    Alternative("lora_variant", Cost.FEWER_ADAPTERS, lambda spec: [PLAIN] if spec.lora_variant == DORA else []),
    Alternative("four_bit_compute", Cost.ROUNDING, lambda spec: [AUTO] if spec.four_bit_compute == "fp32" else []),
    Alternative("four_bit_format", Cost.ROUNDED_SCALES, _double_quantisation),
    Alternative("four_bit_output_layer", Cost.ROUNDED_WEIGHTS, _output_layer),
    Alternative("lora_targets", Cost.FEWER_ADAPTERS, _fewer_adapters),
    Alternative("lora_rank", Cost.OTHER_WEIGHTS, lambda spec: [16] if spec.lora_rank is None else []),
    Alternative("load_in_4bit", Cost.ROUNDED_WEIGHTS, _fixed(True), needs="lora_rank"),
)


def single_changes(spec: RunSpec) -> list[Changes]:
    """Return every change to a value other than the requested one, after any that it needs, in the order of their cost.

    Each changes one setting, except those that need another: 4 bits come with LoRA unless adapters are already trained.
    """
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


def pairs(singles: Sequence[Changes]) -> list[Changes]:
    """Return pairs of changes to different settings; the pair whose costlier change costs least comes first."""
    found = [(*one, *other) for one, other in combinations(singles, 2) if _axis(one) != _axis(other)]
    return sorted(found, key=costs_of)


def whole_grid(singles: Sequence[Changes]) -> list[Changes]:
    """Return every combination of at most one change per setting, except the one that changes nothing.

    What changes only the loop, the loss or where something is kept is left out: it goes with everything, and would
    double the grid each time.
    """
    shown = [each for each in singles if each[0].cost not in _NOT_IN_GRID]
    names = list(dict.fromkeys(map(_axis, shown)))
    axes: list[list[Changes]] = [[(), *(each for each in shown if _axis(each) == name)] for name in names]
    combined = [tuple(change for part in parts for change in part) for parts in product(*axes)]
    return sorted(filter(None, combined), key=lambda changes: (len(changes), costs_of(changes)))


_NOT_IN_GRID = frozenset(
    {
        *(Cost.ONE_LINE, Cost.CHUNKED_LOSS, Cost.STEP_IN_BACKWARD, Cost.RECOMPUTED_LOGITS),
        *(Cost.PAGED_STATE, Cost.OFFLOADED_STATE, Cost.OFFLOAD),
    }
)


def _axis(single: Changes) -> str:
    """Return the setting that a combination changes at most once: LoRA is alone or with 4 bits, not both."""
    return single[0].setting


def costs_of(changes: Changes) -> tuple[int, ...]:
    """Return the costs, the highest first: changes are ordered by this."""
    return tuple(sorted((change.cost for change in changes), reverse=True))


def label_of(changes: Changes) -> str:
    return " + ".join(change.label for change in changes) or "as requested"


def changed(spec: RunSpec, changes: Changes) -> RunSpec:
    """Return the spec with these changes. Raises SpecError for what the model does not have."""
    return replace(spec, **{change.setting: change.value for change in changes})
