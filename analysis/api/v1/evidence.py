"""Stored probes and estimates -> curves and certificates. Measured and estimated figures are never mixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from analysis.models import Measurement, Run
from analysis.presentation.stored_estimate import EstimatedPoint, StoredEstimate, read_estimates
from engine.result import Outcome, Purpose

_MEASURED = (
    *("batch_size", "outcome", "peak_allocated_bytes", "peak_reserved_bytes"),
    *("device_used_bytes", "step_seconds", "samples_per_second"),
)


def curves_of(run: Run) -> list[dict[str, Any]]:
    """Return one curve of a measurement, from its probes so far; of a finished estimate one for each card."""
    if run.is_estimate:
        return [_estimated(estimate) for estimate in read_estimates(run.result)] if run.result else []
    return [
        {
            "gpu": run.device_name or None,
            "capacity_bytes": run.capacity_bytes,
            "limit_bytes": run.limit_bytes,
            "points": _points(Measurement.objects.of(run)),
        }
    ]


def certificate_of(run: Run, boundary: Mapping[str, Any]) -> dict[str, Any]:
    """Put together the boundary and the probes that prove it."""
    fits, refused = boundary["largest_batch_size"], boundary["refused_batch_size"]
    probes = [probe for probe in Measurement.objects.of(run) if probe.batch_size in (fits, refused)]
    return {
        **{name: boundary.get(name) for name in ("refusal", "note")},
        **{name: boundary[name] for name in ("certified", "reason", "largest_batch_size", "refused_batch_size")},
        "run": run.pk,
        "soak_steps": boundary.get("soak_steps", 0),
        "fits": [probe for probe in probes if probe.batch_size == fits],
        "refused": [probe for probe in probes if probe.batch_size == refused],
    }


def _points(probes: Iterable[Measurement]) -> list[dict[str, Any]]:
    found: dict[int, Measurement] = {}
    for probe in probes:
        if probe.purpose != Purpose.SOAK or probe.batch_size not in found:
            found[probe.batch_size] = probe
    return [{name: getattr(found[size], name) for name in _MEASURED} for size in sorted(found)]


def _estimated(estimate: StoredEstimate) -> dict[str, Any]:
    return {
        "gpu": estimate.gpu_name,
        "capacity_bytes": estimate.total_bytes,
        "limit_bytes": estimate.capacity_bytes,
        "points": [_expected(point) for point in estimate.points],
    }


def _expected(point: EstimatedPoint) -> dict[str, Any]:
    return {
        **{name: getattr(point, name, None) for name in _MEASURED},
        "outcome": Outcome.FITS if point.fits else Outcome.OUT_OF_MEMORY,
    }
