"""Curves as a run's page is given them: drawn in both widths, with the estimate beside the measurement."""

from __future__ import annotations

from dataclasses import replace

from analysis.presentation.charts import NARROW, WIDE, Curve, draw
from analysis.presentation.charts.curves import Series
from analysis.presentation.charts.drawing import Drawing
from analysis.presentation.stored_estimate import StoredEstimate

ESTIMATED = "Estimated before"


def drawn(curve: Curve) -> list[Drawing]:
    """The wide one first."""
    return [draw(curve, size) for size in (WIDE, NARROW)]


def with_estimate(curve: Curve, estimate: StoredEstimate | None) -> Curve:
    """The curve with what was predicted: for every size that was to fit, and as far as the measurement went."""
    if estimate is None:
        return curve
    furthest = max(curve.batch_sizes)
    shown = [point for point in estimate.points if point.fits or point.batch_size <= furthest]
    points = tuple((point.batch_size, float(point.memory_bytes)) for point in shown)
    if not points:
        return curve
    return replace(curve, others=(*curve.others, Series(ESTIMATED, "line-estimated", points)))
