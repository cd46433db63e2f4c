"""A field that claims what the probes do not show, and the comparison that finds it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ROUNDING = 1e-9
"""Of a figure: other orders of the same sums, and other builds of Python's mathematics, differ by less."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A field of a document, what it claims, and what follows from the probes or bounds the claim."""

    field: str
    claimed: Any
    recomputed: Any


def differences(field: str, claimed: Any, recomputed: Any, *, may_claim_less: bool = True) -> Iterator[Contradiction]:
    """Yield the fields in which the claim is not what was recomputed. A null claims nothing, where that is allowed."""
    if claimed is None and may_claim_less:
        return
    if isinstance(recomputed, Mapping) and isinstance(claimed, Mapping):
        for name, value in recomputed.items():
            yield from differences(f"{field}.{name}", claimed.get(name), value, may_claim_less=may_claim_less)
    elif not is_same(claimed, recomputed):
        yield Contradiction(field, claimed, recomputed)


def is_same(claimed: Any, recomputed: Any) -> bool:
    """Whether both are the same but for rounding."""
    if isinstance(claimed, bool) or isinstance(recomputed, bool):
        return claimed is recomputed
    if isinstance(claimed, (int, float)) and isinstance(recomputed, (int, float)):
        return math.isclose(claimed, recomputed, rel_tol=ROUNDING, abs_tol=1e-12)
    if isinstance(claimed, (list, tuple)) and isinstance(recomputed, (list, tuple)):
        return _are_same(claimed, recomputed)
    return bool(claimed == recomputed)


def _are_same(claimed: Sequence[Any], recomputed: Sequence[Any]) -> bool:
    return len(claimed) == len(recomputed) and all(map(is_same, claimed, recomputed))
