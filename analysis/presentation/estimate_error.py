"""Errors of estimates, as text: for one measurement, and for all of them by GPU and model. Pure."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from analysis.presentation.formatting import bytes_text
from engine.documents.estimated import EstimatedCard
from engine.documents.measured import Measured
from engine.estimate.types import EstimateAt
from engine.results.result import Probe, Reason
from engine.results.stats import SAME_FRACTION, decisive_probes

SAME = "the same"


@dataclass(frozen=True, slots=True)
class Beside:
    """One estimated figure with the measured one."""

    name: str
    estimated: str
    measured: str
    error_fraction: float | None
    batch_size: int | None = None
    """Whether the row is about the memory of one size."""
    is_too_high: bool = False
    """Whether a size was estimated where none fits, which has no error in percent."""

    @property
    def difference(self) -> str:
        return "too high" if self.is_too_high else describe_difference(self.error_fraction)

    @property
    def sentence(self) -> str:
        return f"{self.name}: estimated {self.estimated}, measured {self.measured}: {self.difference}."


@dataclass(frozen=True, slots=True)
class Grade:
    """One measured run with an estimate: the figures for the page of all errors."""

    run_id: int
    finished_at: dt.datetime
    gpu: str
    family: str
    model: str
    peak_error: float
    boundary_error: float | None
    is_calibrated: bool | None


@dataclass(frozen=True, slots=True)
class Group:
    """All graded runs of one GPU and one family of models."""

    gpu: str
    family: str
    grades: tuple[Grade, ...]

    @property
    def typical_peak_error(self) -> float:
        return median(abs(grade.peak_error) for grade in self.grades)

    @property
    def worst_peak_error(self) -> float:
        return max((grade.peak_error for grade in self.grades), key=abs)

    @property
    def worst_text(self) -> str:
        text = describe_difference(self.worst_peak_error)
        return "no error" if text == SAME else text

    @property
    def typical_boundary_error(self) -> float | None:
        known = [abs(grade.boundary_error) for grade in self.grades if grade.boundary_error is not None]
        return median(known) if known else None

    @property
    def latest(self) -> dt.datetime:
        return max(grade.finished_at for grade in self.grades)


def describe_difference(error_fraction: float | None) -> str:
    """0.008 -> "0.8 % over"; None -> "not comparable"."""
    if error_fraction is None:
        return "not comparable"
    if abs(error_fraction) < SAME_FRACTION:
        return SAME
    return f"{abs(error_fraction) * 100:.1f} % {'over' if error_fraction > 0 else 'under'}"


def groups_of(grades: Iterable[Grade]) -> list[Group]:
    found: dict[tuple[str, str], list[Grade]] = defaultdict(list)
    for grade in grades:
        found[grade.gpu, grade.family].append(grade)
    groups = [Group(gpu, family, tuple(members)) for (gpu, family), members in found.items()]
    return sorted(groups, key=lambda group: (-len(group.grades), group.gpu, group.family))


def compare_to_estimate(estimate: EstimatedCard, result: Measured) -> list[Beside]:
    rows = [_boundary(estimate, result)]
    for size, probe in sorted(decisive_probes(result.probes).items()):
        point = estimate.at_batch_size(size)
        pair = _measured_memory(probe, point) if point is not None and probe.fits else None
        if pair is not None:
            estimated, measured = pair
            error = estimated / measured - 1
            name = f"Peak memory at batch {size:,}"
            rows.append(Beside(name, bytes_text(estimated), bytes_text(measured), error, size))
    return rows


def _measured_memory(probe: Probe, point: EstimateAt) -> tuple[int, int] | None:
    """Return estimated and measured bytes of one size: reserved where both have it, else allocated."""
    pairs = (
        (point.peak_reserved_bytes, probe.peak_reserved_bytes),
        (point.peak_allocated_bytes, probe.peak_allocated_bytes),
    )
    return next(((estimated, measured) for estimated, measured in pairs if estimated and measured), None)


def _boundary(estimate: EstimatedCard, result: Measured) -> Beside:
    """Compare the boundaries only where the measured one is certified by memory: any other is a lower bound."""
    estimated, measured = estimate.largest_batch_size, result.boundary.largest_batch_size
    is_known = result.boundary.certified and result.boundary.reason in (Reason.OUT_OF_MEMORY, Reason.DOES_NOT_FIT)
    error = None
    if is_known and measured:
        error = estimated / measured - 1
    elif is_known and measured == estimated:  # both say that nothing fits; else there is no ratio
        error = 0.0
    bound = "" if is_known or not measured else "at least "
    texts = _describe_size(estimated), f"{bound}{_describe_size(measured)}"
    return Beside("Largest batch size", *texts, error, is_too_high=is_known and measured == 0 and bool(estimated))


def _describe_size(size: int | None) -> str:
    if size is None:
        return "not known"
    return f"{size:,}" if size else "does not fit"
