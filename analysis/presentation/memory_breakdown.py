"""Use of memory: by kind at the size that is shown, by kind over all sizes, and by each counter."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.presentation.charts.bars import Stack, memory_stack
from engine.documents.measured import Measured
from engine.results.result import Probe
from engine.results.stats import decisive_probes


@dataclass(frozen=True, slots=True)
class Level:
    """The value of one counter at the peak, as a share of the limit. `text` says what is counted."""

    name: str
    text: str
    size_bytes: int
    width_percent: str


@dataclass(frozen=True, slots=True)
class Peak:
    batch_size: int
    size_bytes: int
    percent: str
    phase: str


def stack_probe(result: Measured) -> Probe | None:
    shown = result.recommended or result.largest_with_reserve or result.largest
    wanted = shown.batch_size if shown else None
    fitting = (p for p in result.probes if p.batch_size == wanted and p.memory_by_kind is not None)
    return next(fitting, None)


def stack(result: Measured) -> Stack | None:
    probe = stack_probe(result)
    if probe is None or probe.memory_by_kind is None:
        return None
    return memory_stack(probe.batch_size, probe.memory_by_kind, peak_phase=probe.peak_phase)


def stacks(result: Measured) -> list[Stack]:
    probes = [probe for probe in decisive_probes(result.probes).values() if probe.fits and probe.memory_by_kind]
    drawn = (
        memory_stack(probe.batch_size, kinds, peak_phase=probe.peak_phase, whole_bytes=result.limit_bytes)
        for probe in probes
        if (kinds := probe.memory_by_kind) is not None
    )
    return [each for each in drawn if each is not None]


def levels(result: Measured) -> list[Level]:
    probe = stack_probe(result)
    if probe is None:
        return []
    rows = (
        ("allocated", "by tensors", probe.peak_allocated_bytes),
        ("reserved", "by PyTorch's allocator", probe.peak_reserved_bytes),
        ("device used", "all processes, the context too", probe.device_used_bytes),
        ("limit", "memory that this run may use", result.limit_bytes),
    )
    whole = max(size for *_, size in rows if size is not None)
    return [Level(name, text, size, f"{size / whole * 100:.2f}%") for name, text, size in rows if size is not None]


def peaks_without_parts(result: Measured) -> list[Peak]:
    """Return the peak of each size where no probe tells what filled it, as of somebody's own training."""
    if any(probe.memory_by_kind is not None for probe in result.probes):
        return []
    return [
        Peak(
            probe.batch_size,
            size,
            f"{size / result.limit_bytes * 100:.1f} %",
            (probe.peak_phase or "").replace("_", " "),
        )
        for probe in decisive_probes(result.probes).values()
        if probe.fits and (size := probe.memory_bytes) is not None
    ]
