"""Use of memory: by kind at the size that is shown, by kind over all sizes, and by each counter."""

from __future__ import annotations

from dataclasses import asdict

from analysis.charts.bars import Stack, stack_of
from engine.facts.result import Probe
from engine.facts.stats import decisive_probes
from engine.questions.documents.measured import Measured


def stack_probe(result: Measured) -> Probe | None:
    shown = result.recommended or result.largest_with_reserve or result.largest
    wanted = shown.batch_size if shown else None
    fitting = (p for p in result.probes if p.batch_size == wanted and p.memory_by_kind is not None)
    return next(fitting, None)


def stack(result: Measured) -> Stack | None:
    probe = stack_probe(result)
    return _stack_at(probe) if probe else None


def stacks(result: Measured) -> list[Stack]:
    fitting = [probe for probe in decisive_probes(result.probes).values() if probe.fits]
    return [stack for probe in fitting if (stack := _stack_at(probe, result.limit_bytes))]


def _stack_at(probe: Probe, whole_bytes: int = 0) -> Stack | None:
    kinds = asdict(probe.memory_by_kind) if probe.memory_by_kind else {}
    named = [(key.removesuffix("_bytes"), size) for key, size in kinds.items()]
    parts = [(name, name.replace("_", " "), size) for name, size in named]
    return stack_of(probe.batch_size, parts, peak_phase=probe.peak_phase, whole_bytes=whole_bytes)


def levels(result: Measured) -> list[tuple[str, str, int, str]]:
    """Return a row for each counter at the peak: name, meaning, bytes, and the share of the largest counter."""
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
    return [(name, text, size, f"{size / whole * 100:.2f}%") for name, text, size in rows if size is not None]


def peaks_without_parts(result: Measured) -> list[tuple[Probe, str, str]]:
    """Return each size's probe, its share of the limit and its phase where no probe tells what filled the memory."""
    if any(probe.memory_by_kind is not None for probe in result.probes):
        return []
    return [
        (probe, f"{size / result.limit_bytes * 100:.1f} %", (probe.peak_phase or "").replace("_", " "))
        for probe in decisive_probes(result.probes).values()
        if probe.fits and (size := probe.memory_bytes) is not None
    ]
