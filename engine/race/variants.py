"""PURE: the changes that race for a catalogue model: each is a setting with another value, under a name.

First changes of speed and memory alone, then of precision, then of what is recomputed, which pays only by a larger
batch. A change made already, or impossible for the model or the device, is left out with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from typing import Any

from ..errors import SpecError
from ..settings.loop_settings import RELEASED
from ..settings.spec import SETTINGS, RunSpec
from ..settings.step_settings import BEFORE_FORWARD, FLASH, HALF_PRECISIONS
from .field import Entry, Field


class ChangeKind(StrEnum):
    SPEED = "speed"
    PRECISION = "precision"
    RECOMPUTATION = "recomputation"

    @property
    def label(self) -> str:
        return _KIND_LABELS[self]


_KIND_LABELS = {
    ChangeKind.SPEED: "speed and memory alone",
    ChangeKind.PRECISION: "a change of precision",
    ChangeKind.RECOMPUTATION: "computed twice, for memory",
}


@dataclass(frozen=True, slots=True)
class Change:
    """A setting with another value, under the name by which `--try` takes it."""

    name: str
    setting: str
    value: Any
    kind: ChangeKind = ChangeKind.SPEED

    @property
    def label(self) -> str:
        """Write "AdamW, fused", "bf16 autocast", "torch.compile"."""
        each = SETTINGS[self.setting]
        if isinstance(self.value, bool):
            return each.describe(self.value)
        return (each.choices or {}).get(self.value, str(self.value)).partition(" (")[0]


CHANGES = {
    change.name: change
    for change in (
        Change("fused", "optimizer", "adamw-fused"),
        Change("channels-last", "channels_last", True),
        Change("sdpa", "attention", "sdpa"),
        Change("flash", "attention", FLASH),
        Change("compile", "torch_compile", True),
        Change("no-cache", "without_cache", True),
        Change("release-outputs", "outputs", RELEASED),
        Change("zero-grad", "zero_grad", BEFORE_FORWARD),
        Change("expandable", "expandable_segments", True),
        Change("tf32", "precision", "tf32", ChangeKind.PRECISION),
        Change("bf16", "precision", "bf16", ChangeKind.PRECISION),
        Change("checkpointing", "gradient_checkpointing", True, ChangeKind.RECOMPUTATION),
    )
}
"""Every change, by its name, in the order in which tables show them."""


@dataclass(frozen=True, slots=True)
class NotTried:
    """A change that is not tried, and why."""

    name: str
    label: str
    reason: str


def changes_to_try(spec: RunSpec, wanted: Iterable[str] = ()) -> tuple[tuple[Change, ...], tuple[NotTried, ...]]:
    names = tuple(wanted) or tuple(CHANGES)
    reasons = {name: _why_not(spec, CHANGES[name]) for name in names}
    tried = tuple(CHANGES[name] for name, reason in reasons.items() if reason is None)
    return tried, tuple(NotTried(name, CHANGES[name].label, reason) for name, reason in reasons.items() if reason)


def _why_not(spec: RunSpec, change: Change) -> str | None:
    """Return why a change makes no difference to a training, or is not possible; None where it is tried."""
    if getattr(spec, change.setting) == change.value:
        return "the training has it already"
    has_precision = f"the training has {spec.precision} already"
    reasons = {
        "fused": ("only AdamW has a fused variant among the optimizers on offer", spec.optimizer != "adamw"),
        "sdpa": ("the model takes it already, where it has it", spec.attention != "eager"),
        "flash": ("it needs half precision", spec.precision not in HALF_PRECISIONS),
        "release-outputs": ("the model's outputs are small", not spec.workload.has_large_outputs),
        "tf32": (has_precision, spec.precision != "fp32"),
        "bf16": (has_precision, spec.precision not in ("fp32", "tf32")),
    }
    reason, holds = reasons.get(change.name, ("", False))
    if holds:
        return reason
    try:
        replace(spec, **{change.setting: change.value})
    except SpecError as error:
        return error.reason
    return None


def settings_of_entry(entry: Entry) -> dict[str, Any]:
    return {CHANGES[name].setting: CHANGES[name].value for name in entry}


def label_of_entry(entry: Entry) -> str:
    """Write "AdamW, fused + bf16 autocast"; "today" for no change."""
    return " + ".join(CHANGES[name].label for name in entry) or "today"


def field_of(spec: RunSpec, changes: Iterable[Change], **limits: Any) -> Field:
    """Return the field of a race: changes of one setting exclude each other, and those that no spec holds together."""
    each = tuple(changes)
    conflicts = {frozenset({a.name, b.name}) for a, b in combinations(each, 2) if not _go_together(spec, a, b)}
    return Field(tuple(change.name for change in each), frozenset(conflicts), **limits)


def _go_together(spec: RunSpec, one: Change, other: Change) -> bool:
    if one.setting == other.setting:
        return False
    both: Mapping[str, Any] = {one.setting: one.value, other.setting: other.value}
    try:
        replace(spec, **both)
    except SpecError:
        return False
    return True
