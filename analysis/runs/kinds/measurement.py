"""A measurement: the largest and the fastest batch size of a model of the catalogue, on a device."""

from __future__ import annotations

from typing import Any

from analysis.models import Run
from analysis.runs.columns.matrix_cells import Cell, measured_cells
from analysis.runs.columns.result_columns import measured_columns
from analysis.runs.kinds.rules import Rules
from engine.questions.faster.spec import FasterSpec
from engine.settings.spec import RunSpec


class Measurement(Rules):
    columns = staticmethod(measured_columns)
    spec_types = (RunSpec,)
    takes_probes = True

    def racing(self, run: Run) -> FasterSpec:
        return FasterSpec.of(run.run_spec)

    def cells(self, run: Run, found: Any) -> list[Cell]:
        return measured_cells(run.spec, found)
