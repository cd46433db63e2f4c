"""The smallest change with which a batch size fits, and a grid of settings around it.

`evaluate` estimates each combination, which has to fit with the margin of error. Single changes are tried first, by
their cost; pairs only where none of them is enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from ..errors import EstimateImpossible, SpecError
from ..settings.spec import RunSpec
from ..settings.step_settings import FREED
from .alternatives import (
    BATCH_NORM_NOTE,
    Changes,
    Cost,
    changed,
    costs_of,
    label_of,
    lines_together,
    single_changes,
    together,
    whole_grid,
)
from .types import Estimate, Judged, safe_bytes

ENOUGH_PAIRS = 3
"""Number of fitting pairs after which no more are tried: each costs an estimate, and the cheapest come first."""


class Scope(StrEnum):
    """How much is tried."""

    FIRST = "first"
    """Changes in the order of their cost, up to the first that fits."""
    SINGLE = "single"
    """Every change by itself; pairs only where none of them fits."""
    GRID = "grid"
    """Every combination of the changes."""


class Evaluated(NamedTuple):
    """The estimate of one combination, and the peak memory of each of its batch sizes."""

    made: Estimate
    peak_bytes: Callable[[int], int]

    def is_safe(self, memory_bytes: int) -> bool:
        return memory_bytes <= safe_bytes(self.made.limit_bytes, self.made.margin_fraction)


@dataclass(frozen=True, slots=True)
class Variant(Judged):
    """One combination of settings, judged at the requested batch size. `settings` differ from the request.

    `micro_batch_size` is None where the whole batch is one step, else the size of the parts of each micro-batch of the
    request; `memory_bytes` is the peak of a step.
    """

    label: str
    settings: dict[str, Any]
    costs: tuple[str, ...]
    batch_size: int
    memory_bytes: int
    fits: bool
    is_safe: bool
    largest_batch_size: int
    safe_batch_size: int
    micro_batch_size: int | None = None
    order: tuple[int, ...] = ()

    @property
    def changes_count(self) -> int:
        return len(self.order)


@dataclass(frozen=True, slots=True)
class LeftOut:
    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class WhatToChange:
    """What was tried, the request first. `advice` are the labels of the safe variants, the smallest change first."""

    scope: Scope
    batch_size: int
    limit_bytes: int
    margin_fraction: float
    variants: tuple[Variant, ...]
    advice: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    seconds: float = 0.0

    @property
    def requested(self) -> Variant:
        return self.variants[0]

    @property
    def advised(self) -> list[Variant]:
        by_label = {variant.label: variant for variant in self.variants}
        return [by_label[label] for label in self.advice]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


Evaluate = Callable[[RunSpec], Evaluated]
Report = Callable[[str], None]


def what_to_change(
    spec: RunSpec,
    batch_size: int,
    evaluate: Evaluate,
    scope: Scope,
    report: Report = lambda _: None,
    changeable: Collection[str] | None = None,
) -> WhatToChange:
    """Try the changes of `scope`, of these settings alone. Raises what `evaluate` raises for the request itself."""
    started, requested = time.monotonic(), evaluate(spec)
    tried = _Tried(spec, batch_size, evaluate, report)
    tried.whole((), requested)
    enough = 1 if scope is Scope.FIRST else None
    singles = [
        changes
        for changes in single_changes(spec)
        if changeable is None or all(each.setting in changeable for each in changes)
    ]
    of_the_loop = [changes for changes in singles if costs_of(changes)[0] < Cost.SMALLER_PIECES]
    others = [changes for changes in singles if changes not in of_the_loop]
    tried.all_of([*of_the_loop, *lines_together(of_the_loop)], enough)
    if not (tried.safe and scope is Scope.FIRST):
        tried.in_pieces(())
        tried.all_of(whole_grid(singles) if scope is Scope.GRID else others, enough)
    if not tried.safe:
        for changes in singles:
            tried.in_pieces(changes)
        if scope is not Scope.GRID:
            tried.all_of(together(singles, 2), enough or ENOUGH_PAIRS)
    # stable: milder values stay first
    safe = sorted(tried.safe, key=lambda variant: (variant.changes_count, variant.order))
    return WhatToChange(
        scope=scope,
        batch_size=batch_size,
        limit_bytes=requested.made.limit_bytes,
        margin_fraction=requested.made.margin_fraction,
        variants=tuple(tried.variants),
        advice=() if tried.variants[0].is_safe else tuple(variant.label for variant in safe),
        left_out=tuple(tried.left_out),
        seconds=round(time.monotonic() - started, 1),
    )


@dataclass
class _Tried:
    spec: RunSpec
    batch_size: int
    evaluate: Evaluate
    report: Report
    variants: list[Variant] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    _evaluated: dict[Changes, Evaluated] = field(default_factory=dict)

    @property
    def safe(self) -> list[Variant]:
        return [variant for variant in self.variants if variant.is_safe]

    def all_of(self, candidates: Sequence[Changes], enough: int | None = None) -> None:
        started = time.monotonic()
        for number, changes in enumerate(candidates):
            if enough is not None and len(self.safe) >= enough:
                return
            if changes in self._evaluated:  # lines of the loop together are a pair, too
                continue
            left = (time.monotonic() - started) / number * (len(candidates) - number) if number else None
            remaining = "" if left is None else f", about {left:.0f} s left"
            self.report(f"change {number + 1} of {len(candidates)}: {label_of(changes)}{remaining}")
            try:
                self.whole(changes, self.evaluate(changed(self.spec, changes)))
            except (SpecError, EstimateImpossible) as error:
                self.left_out.append(LeftOut(label_of(changes), str(error)))

    def whole(self, changes: Changes, found: Evaluated) -> None:
        self._evaluated[changes] = found
        self._add(changes, found, found.peak_bytes(self.batch_size), None)

    def in_pieces(self, changes: Changes) -> None:
        """Judge the settings with gradient accumulation: the largest micro-batch that divides the batch and fits.

        From the second micro-batch on all gradients are held, which may raise the peak: another estimate is needed.
        """
        alone = self._evaluated.get(changes)
        if alone is None or alone.made.safe_batch_size < 1 or self.spec.optimizer == "none" or self.batch_size == 1:
            return
        found, spec = alone, changed(self.spec, changes)
        if spec.gradients == FREED:  # freed gradients cannot be added up over micro-batches
            return
        if spec.accumulation_steps == 1:
            found = self.evaluate(replace(spec, accumulation_steps=2))
        for size in range(min(found.made.safe_batch_size, self.batch_size // 2), 0, -1):
            if self.batch_size % size == 0 and found.is_safe(memory_bytes := found.peak_bytes(size)):
                self._add(changes, found, memory_bytes, size)
                return

    def _add(self, changes: Changes, found: Evaluated, memory_bytes: int, micro_batch_size: int | None) -> None:
        costs: list[Cost] = [change.cost for change in changes]
        label = label_of(changes)
        if micro_batch_size is not None:
            costs.append(Cost.SMALLER_PIECES)
            count = self.batch_size // micro_batch_size * self.spec.accumulation_steps
            pieces = f"{count} micro-batches of {micro_batch_size}"
            label = f"{label} + {pieces}" if changes else pieces
        of_pieces = f"; {BATCH_NORM_NOTE}" if self.spec.workload.architecture == "cnn" else ""
        self.variants.append(
            Variant(
                label=label,
                settings={change.setting: change.value for change in changes},
                costs=tuple(f"{c.text}{of_pieces if c is Cost.SMALLER_PIECES else ''}" for c in sorted({*costs})),
                batch_size=self.batch_size,
                memory_bytes=memory_bytes,
                fits=memory_bytes <= found.made.limit_bytes,
                is_safe=found.is_safe(memory_bytes),
                largest_batch_size=found.made.largest_batch_size,
                safe_batch_size=found.made.safe_batch_size,
                micro_batch_size=micro_batch_size,
                order=tuple(sorted(costs, reverse=True)),
            )
        )
