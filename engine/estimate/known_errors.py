"""How far predictions were from measured peaks, by family of models. Data, copied from what was measured.

Source: `benchmarks/results/prediction_error.json`, made by `benchmarks/prediction_error.py`; a test holds the two
together. On cards: published runs on two NVIDIA cards, reserved bytes against what NVML rose by. On the CPU:
allocated bytes against the allocator's events. AMD's cards were never compared.
"""

from __future__ import annotations

from engine.catalog import Architecture
from engine.estimate.gpus import Gpu
from engine.estimate.types import KnownError
from engine.spec import RunSpec

ENOUGH_RUNS = 19
"""The worst of n comparisons bounds the next one with probability n / (n + 1): from 19 on, 95 %."""
TOO_FEW_FACTOR = 2
"""By how much the margin exceeds the worst error known where there are fewer comparisons. A choice, no measurement."""
UNKNOWN_MARGIN_FRACTION = 0.10
"""Where nothing was compared. A choice as well."""

_PUBLISHED = "published runs of RTX 3060 and A100, benchmarks/data/measured_peaks.json"
_EVENTS = "the CPU allocator's events of real steps"
KNOWN: dict[tuple[str, Architecture], KnownError] = {
    ("measured", "transformer"): KnownError(0.0136, 0.0385, 5, _PUBLISHED),
    ("measured", "cnn"): KnownError(0.0379, 0.0455, 5, _PUBLISHED),
    ("cpu", "transformer"): KnownError(0.0, 0.0026, 17, _EVENTS),
    ("cpu", "cnn"): KnownError(0.0, 0.0022, 7, _EVENTS),
}


def known_error(spec: RunSpec, gpu: Gpu | None) -> KnownError | None:
    """Of this family on this kind of device; None where nothing was compared."""
    if gpu is not None and gpu.vendor != "nvidia":
        return None
    return KNOWN.get(("cpu" if gpu is None else "measured", spec.workload.architecture))


def margin_fraction(spec: RunSpec, gpu: Gpu | None) -> float:
    """How much more than predicted a safe size must have room for."""
    known = known_error(spec, gpu)
    if known is None:
        return UNKNOWN_MARGIN_FRACTION
    return round(known.worst_fraction * (1 if known.runs >= ENOUGH_RUNS else TOO_FEW_FACTOR), 4)
