"""An estimate: figures of the predictor for cards of the catalogue. It needs no device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.conf import settings

from analysis.models import ALL_GPUS, CPU, Run
from analysis.runs.columns.matrix_cells import Cell, estimated_cells
from analysis.runs.columns.result_columns import estimates_columns
from analysis.runs.gpu_catalog import calibrations
from analysis.runs.kinds.rules import Place, Rules
from engine.estimate.spec import EstimateSpec

TIME_BUDGET_SECONDS = 300.0
"""Twenty times what an estimate of the whole catalogue should take: one that takes longer is stuck."""
CHANGES_SECONDS = 1800.0
"""For an estimate with other settings or sizes, each of which takes as long as one estimate."""


class Estimate(Rules):
    columns = staticmethod(estimates_columns)
    spec_types = (EstimateSpec,)

    def placed(self, spec: EstimateSpec, device: str) -> EstimateSpec:
        longest = min(CHANGES_SECONDS, settings.RUN_TIME_BUDGET_MAX_SECONDS)
        seconds = longest if spec.what_to_change or spec.frontier or spec.largest else TIME_BUDGET_SECONDS
        device = CPU if spec.gpu == CPU else "cuda"
        return replace(spec, training=replace(spec.training, device=device, time_budget_seconds=seconds))

    def spec_columns(self, spec: EstimateSpec) -> dict[str, Any]:
        return super().spec_columns(spec.training) | {
            "spec": spec.to_dict(),
            "gpu": spec.gpu,
            "needs_bytes": None,
            "uses_device_price": True,  # the price of the device that may measure it later
        }

    def calibrations(self, run: Run) -> list[dict[str, Any]]:
        return calibrations(run.gpu)

    def cells(self, run: Run, found: Any) -> list[Cell]:
        return estimated_cells(run.spec, found)

    def is_shareable(self, run: Run) -> bool:
        return run.gpu != ALL_GPUS

    def place(self, run: Run) -> Place | None:
        return None if run.gpu == ALL_GPUS else Place(run.gpu, run.spec.get("memory_limit_bytes"))
