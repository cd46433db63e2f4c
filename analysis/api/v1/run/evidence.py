"""Stored probes -> certificates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.models import Measurement, Run
from analysis.presentation.origin import origin_members


def certificate_of(run: Run, boundary: Mapping[str, Any]) -> dict[str, Any]:
    """Put together the boundary and the probes that prove it."""
    fits, refused = boundary["largest_batch_size"], boundary["refused_batch_size"]
    probes = [probe for probe in Measurement.objects.of(run) if probe.batch_size in (fits, refused)]
    return {
        **{name: boundary.get(name) for name in ("refusal", "note")},
        **{name: boundary[name] for name in ("certified", "reason", "largest_batch_size", "refused_batch_size")},
        **origin_members(run),
        "run": run.pk,
        "soak_steps": boundary.get("soak_steps", 0),
        "fits": [probe for probe in probes if probe.batch_size == fits],
        "refused": [probe for probe in probes if probe.batch_size == refused],
    }
