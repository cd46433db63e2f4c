"""Stored estimates that answer a question: the same training on a GPU of the catalogue, whatever size is used today.

They are found by the cells of the matrix, which exist for catalogue models on whole GPUs alone: nothing of anybody's
own config, limit, name or note is in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.models import ALL_GPUS, MatrixCell, Run, State
from analysis.runs.columns.matrix_cells import ESTIMATED, key_of
from analysis.runs.earlier.reuse import NOT_MEASURED, newest_like
from analysis.runs.gpu_catalog import gpu_ids
from engine.estimate.spec import EstimateSpec
from engine.settings.spec import RunSpec

_NOT_OF_ESTIMATES = (*NOT_MEASURED, "current_batch_size", "reserve_fraction", "reserve_bytes", "compare_speed")
_OTHERS_MAX = 5


@dataclass(frozen=True, slots=True)
class FoundEstimate:
    run: Run
    document: Mapping[str, Any]


def stored_estimates(spec: RunSpec, gpu: str) -> list[FoundEstimate]:
    """Find the newest estimate of this training on a GPU, or on each of the catalogue; empty without any."""
    if spec.memory_limit_bytes is not None:
        return []
    cells = list(_cells(gpu).filter(**key_of(spec.to_dict(), spec.workload), card__in=gpu_ids()).order_by("card"))
    # each run is read once: one estimate of the whole catalogue has the answers of all its GPUs
    runs = Run.objects.in_bulk({cell.run_id for cell in cells})
    parts = {
        (run.pk, part["gpu"]["id"]): part for run in runs.values() for part in (run.result or {}).get("estimates") or ()
    }
    return [
        FoundEstimate(runs[cell.run_id], part)
        for cell in cells
        if (part := parts.get((cell.run_id, cell.card))) is not None
    ]


def other_cells(spec: RunSpec, gpu: str) -> list[MatrixCell]:
    return list(_cells(gpu).filter(model=spec.model).order_by("-answered_at")[:_OTHERS_MAX])


def estimate_like(spec: EstimateSpec, *states: State) -> Run | None:
    made = Run.objects.estimating().filter(
        state__in=states, model=spec.training.model, gpu=spec.gpu, cancel_requested=False
    )
    return newest_like(made, spec.training, _NOT_OF_ESTIMATES)


def _cells(gpu: str) -> Any:
    cells = MatrixCell.objects.filter(kind=ESTIMATED)
    return cells if gpu == ALL_GPUS else cells.filter(card=gpu)
