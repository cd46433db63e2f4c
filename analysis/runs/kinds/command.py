"""A command: the batch sizes of a training command or function of somebody's own, on a device."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from analysis.models import CPU, Run
from analysis.runs.columns.matrix_cells import Cell, cells_of_ranks
from analysis.runs.columns.result_columns import measured_columns
from analysis.runs.commands import devices_of, spec_to_start
from analysis.runs.kinds.rules import Place, Rules
from engine.errors import SpecError
from engine.settings.spec import CPU_DEFAULT_LIMIT_BYTES, DEFAULTS
from engine.trainings.script.spec import FunctionSpec, TuneSpec


class Command(Rules):
    """The rules of a command, whose model is unknown: no precision, no cell, no estimate."""

    spec_types = (TuneSpec, FunctionSpec)
    columns = staticmethod(measured_columns)
    copied = ("current_batch_size",)

    def not_again(self, run: Run) -> str:
        """Return why a reported run cannot be repeated: its settings are of no registered command."""
        is_said = f"it was reported from {run.reported_from}: what ran elsewhere is not started here"
        return is_said if run.is_reported else ""

    def requested(self, run: Run) -> TuneSpec:
        if reason := self.not_again(run):
            raise SpecError("run", reason)
        return spec_to_start(run.spec)

    def placed(self, spec: TuneSpec | FunctionSpec, device: str) -> TuneSpec | FunctionSpec:
        if spec.catalogue and device.partition(":")[0] not in (CPU, "cuda"):
            raise SpecError("ranks", f"several devices are of CUDA, or cpu by gloo, not {device}")
        return replace(spec, device=device)

    def spec_columns(self, spec: TuneSpec | FunctionSpec) -> dict[str, Any]:
        columns = super().spec_columns(spec)
        if (trained := spec.catalogue) is None:
            return columns
        columns |= {name: trained.get(name, DEFAULTS[name]) for name in ("precision", "optimizer")}
        if spec.device == CPU and not spec.emulated_ranks:  # its ranks share the memory of the host
            columns["needs_bytes"] = trained["ranks"] * (spec.memory_limit_bytes or CPU_DEFAULT_LIMIT_BYTES)
        return columns

    def device_count(self, spec: TuneSpec | FunctionSpec) -> int:
        return devices_of(spec)

    def devices_used(self, found: Any) -> int:
        """Return one device a rank; the ranks of a CPU share it, and one device stands in for emulated ranks."""
        is_shared = found.device.kind == CPU or found.spec.get("emulate_ranks")
        return 1 if is_shared else max(found.training.ranks, 1)

    def groups_priced(self, run: Run) -> int:
        return int(run.spec.get("emulate_ranks") or 1) if run.spec.get("catalogue") else 1

    def spec_to_start(self, run: Run) -> dict[str, Any]:
        spec = spec_to_start(run.spec)
        if (count := devices_of(spec)) != run.device_count:
            text = f"takes {count} devices by now, not {run.device_count}: start it again"
            raise SpecError("command", f"{spec.model} {text}")
        return asdict(spec)

    def cells(self, run: Run, found: Any) -> list[Cell]:
        return cells_of_ranks(run.spec, found)

    def place(self, run: Run) -> Place | None:
        return None
