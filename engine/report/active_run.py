"""Writes the figures of a result into the W&B or MLflow run that is active in this process; imports neither."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ..facts.result import RunResult


def figures_of(result: RunResult) -> dict[str, float]:
    """Return "memorymark/largest_batch_size" and others; what is unknown is left out. Peaks are of the largest size."""
    largest, recommended = result.largest, result.recommended
    figures = {
        "largest_batch_size": result.boundary.largest_batch_size,
        "certified": int(result.boundary.certified),
        "recommended_batch_size": recommended.batch_size if recommended else None,
        "speedup": result.speedup,
        "peak_bytes": largest.memory_bytes if largest else None,
        "limit_bytes": result.device.limit_bytes or result.device.capacity_bytes,
    }
    return {f"memorymark/{name}": value for name, value in figures.items() if value is not None}


def write_to_active_runs(result: RunResult) -> Iterator[str]:
    """Yield where the figures were written. A tracker that takes none costs nothing of the result."""
    figures, wandb, mlflow = figures_of(result), sys.modules.get("wandb"), sys.modules.get("mlflow")
    # by their members: a tracker's folder of the same name may have been imported in its place
    if (run := getattr(wandb, "run", None)) is not None:
        run.summary.update(figures)
        yield f"memorymark/largest_batch_size and others are in the summary of the W&B run {run.name or run.id}"
    if mlflow is not None and hasattr(mlflow, "active_run") and (run := mlflow.active_run()) is not None:
        try:
            mlflow.log_metrics(figures)
        except mlflow.exceptions.MlflowException as error:
            yield f"the MLflow run {run.info.run_name} took no figures: {error}"
        else:
            yield f"memorymark/largest_batch_size and others are metrics of the MLflow run {run.info.run_name}"
