"""PURE: memory by length (or image size) and batch, and a budget of tokens (or pixels) for batches of unequal length.

At a fixed number of tokens memory is convex in the length: what fits at two lengths fits between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import SpecError
from ..settings.spec import RunSpec
from ..text.units import format_percent
from .types import Estimate, EstimatedGpu, Limit, Reached

SCHEMA = 1
MAX_LENGTHS = 16
GRID = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""The batch sizes of the surface, up to the largest that a run may try."""


@dataclass(frozen=True, slots=True)
class FrontierCell:
    batch_size: int
    fits: bool
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class FrontierRow(Reached):
    """One length. `units` are tokens, or pixels of an image; the sizes are 0 where not even one sample fits."""

    input_size: int
    units_per_sample: int
    largest_batch_size: int
    safe_batch_size: int
    limits: Limit
    units_at_largest: int
    units_at_safe: int
    cells: tuple[FrontierCell, ...]


@dataclass(frozen=True, slots=True)
class Budget:
    """At most so many tokens (or pixels) a batch, padding counted: the least length x safe batch size of all lengths.

    A sample shorter than `from_input_size` counts as that long. `decided_at` is the length that allows the fewest;
    `is_bounded` is false where another limit than memory ended an estimate.
    """

    units: int
    from_input_size: int
    to_input_size: int
    decided_at: int
    margin_fraction: float
    is_bounded: bool


@dataclass(frozen=True, slots=True)
class Frontier:
    """The lengths of one workload on one card. `unit` is tokens or pixels; `budget` None: some length does not fit."""

    spec: RunSpec
    gpu: EstimatedGpu
    limit_bytes: int
    unit: str
    rows: tuple[FrontierRow, ...]
    budget: Budget | None
    seconds: float
    schema: int = SCHEMA

    @property
    def text(self) -> str:
        if (budget := self.budget) is None:
            return f"No budget of {self.unit}: at one of these sizes not even one sample fits."
        low, high = f"{budget.from_input_size:,}", f"{budget.to_input_size:,}"
        what = "length" if self.unit == "tokens" else "image size"
        margin = format_percent(budget.margin_fraction)
        more = "" if budget.is_bounded else " More may fit: the search stopped at its largest batch size."
        return (
            f"Budget: {budget.units:,} {self.unit} per batch, padding included, for {what}s {low} to {high} (a shorter "
            f"sample counts as {low}). Set by {what} {budget.decided_at:,}, with a margin of {margin}.{more}"
        )

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "frontier", **asdict(self), "spec": self.spec.to_dict(), "text": self.text}


def sizes_in(text: str) -> tuple[int, ...]:
    """Read "128,256,512"."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as exc:
        raise SpecError("frontier", f"{text[:80]!r} is no list of sizes such as 128,256,512") from exc


def specs_of(spec: RunSpec, input_sizes: Sequence[int]) -> list[RunSpec]:
    """Return the spec at each length, shortest first. Raises SpecError for a length that the model does not take."""
    sizes = sorted(set(input_sizes))
    if not 2 <= len(sizes) <= MAX_LENGTHS:
        raise SpecError("frontier", f"give 2 to {MAX_LENGTHS} different sizes, such as 128,256,512")
    try:
        return [spec.with_input_size(size) for size in sizes]
    except SpecError as error:
        raise SpecError("frontier", str(error)) from error


def grid_of(spec: RunSpec) -> tuple[int, ...]:
    return tuple(size for size in GRID if size <= spec.max_batch_size)


def frontier_of(spec: RunSpec, estimates: Sequence[Estimate]) -> Frontier:
    """Put together the estimates of one card, one for each length."""
    first, grid = estimates[0], grid_of(spec)
    rows = tuple(_row(made, grid) for made in estimates)
    unit = "tokens" if spec.workload.is_text else "pixels"
    budget = budget_of(rows, max(made.margin_fraction for made in estimates))
    seconds = round(sum(each.seconds for each in estimates), 3)
    return Frontier(spec, first.gpu, first.limit_bytes, unit, rows, budget, seconds)


def budget_of(rows: Sequence[FrontierRow], margin_fraction: float) -> Budget | None:
    """Return the budget that holds at every length; None where a length allows no sample."""
    tightest = min(rows, key=lambda row: (row.units_at_safe, row.input_size))
    if tightest.units_at_safe == 0:
        return None
    sizes = [row.input_size for row in rows]
    is_bounded = all(row.limits == "memory" for row in rows if row.units_at_safe == tightest.units_at_safe)
    return Budget(
        tightest.units_at_safe, min(sizes), max(sizes), tightest.input_size, margin_fraction, is_bounded=is_bounded
    )


def _row(made: Estimate, grid: tuple[int, ...]) -> FrontierRow:
    spec = made.spec
    units = spec.input_size if spec.workload.is_text else spec.input_size**2
    return FrontierRow(
        input_size=spec.input_size,
        units_per_sample=units,
        largest_batch_size=made.largest_batch_size,
        safe_batch_size=made.safe_batch_size,
        limits=made.limits,
        units_at_largest=units * made.largest_batch_size,
        units_at_safe=units * made.safe_batch_size,
        cells=tuple(FrontierCell(at.batch_size, at.fits, at.memory_bytes) for at in made.at if at.batch_size in grid),
    )
