"""A field that claims more than the probes show, and the comparison that finds it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

ROUNDING = 1e-9
"""Relative tolerance of figures: another order of summation, or another mathematical library, changes them by less."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A field of a document, its claim, and the value or bound that follows from the probes."""

    field: str
    claimed: Any
    recomputed: Any


def differences(field: str, claimed: Any, recomputed: Any, *, may_claim_less: bool = True) -> Iterator[Contradiction]:
    """Yield the fields whose claim differs from the recomputed value. With `may_claim_less` a null claims nothing."""
    if claimed is None and may_claim_less:
        return
    if isinstance(recomputed, Mapping) and isinstance(claimed, Mapping):
        for name, value in recomputed.items():
            yield from differences(f"{field}.{name}", claimed.get(name), value, may_claim_less=may_claim_less)
    elif not is_same(claimed, recomputed):
        yield Contradiction(field, claimed, recomputed)


def is_same(claimed: Any, recomputed: Any) -> bool:
    """Whether both are the same except for rounding."""
    if isinstance(claimed, bool) or isinstance(recomputed, bool):
        return claimed is recomputed
    if isinstance(claimed, (int, float)) and isinstance(recomputed, (int, float)):
        return math.isclose(claimed, recomputed, rel_tol=ROUNDING, abs_tol=1e-12)
    if isinstance(claimed, (list, tuple)) and isinstance(recomputed, (list, tuple)):
        return len(claimed) == len(recomputed) and all(map(is_same, claimed, recomputed))
    if isinstance(claimed, Mapping) and isinstance(recomputed, Mapping):
        return claimed.keys() == recomputed.keys() and all(is_same(claimed[name], recomputed[name]) for name in claimed)
    return bool(claimed == recomputed)
