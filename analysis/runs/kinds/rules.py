"""What each kind of run says of itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from analysis.models import CPU, Run
from analysis.runs.columns.matrix_cells import Cell
from analysis.runs.gpu_catalog import gpu_of
from engine.cli.exit_status import exit_status
from engine.errors import SpecError
from engine.questions.kinds import KINDS, Spec


@dataclass(frozen=True, slots=True)
class Place:
    """Where a training is estimated: a card of the catalogue or the CPU, with the memory that it may use."""

    gpu: str
    memory_limit_bytes: int | None


class Rules:
    """The rules of a kind. What is not overridden holds for a run on a device, with a result that can be shared."""

    spec_types: ClassVar[tuple[type, ...]]
    """The engine's types of a spec of this kind."""
    columns: ClassVar[staticmethod[[Any], dict[str, Any]]]
    """The figures of a result that lists filter and sort on."""
    takes_probes: ClassVar[bool] = False
    """Whether its engine goes on from probes that were measured before, and predicts by the card's calibration."""

    copied: ClassVar[tuple[str, ...]] = ("precision", "optimizer", "current_batch_size")
    """The fields of the spec that are columns of the run, too."""

    def not_again(self, run: Run) -> str:
        """Return why nothing like the run may be started here, whatever is changed; empty: it may."""
        return ""

    def requested(self, run: Run) -> Spec:
        """Return the spec with which the run can be started again. Raises SpecError where it cannot."""
        if reason := self.not_again(run):
            raise SpecError("run", reason)
        return KINDS[run.kind].read_spec(run.spec)

    def placed(self, spec: Any, device: str) -> Spec:
        placed: Spec = replace(spec, device=device)
        return placed

    def spec_columns(self, spec: Any) -> dict[str, Any]:
        columns = {"model": spec.model, "spec": spec.to_dict(), "needs_bytes": spec.memory_limit_bytes}
        return columns | {name: getattr(spec, name) for name in self.copied}

    def device_count(self, spec: Any) -> int:
        return 1

    def devices_used(self, found: Any) -> int:
        return 1

    def groups_priced(self, run: Run) -> int:
        """Return the factor on the devices' price: emulated ranks cost as many devices as they stand for."""
        return 1

    def spec_to_start(self, run: Run) -> dict[str, Any]:
        """Return the spec that the engine gets. Raises SpecError where this host cannot start it."""
        return dict(run.spec)

    def calibrations(self, run: Run) -> list[dict[str, Any]]:
        """Return the fixed memory costs of cards by which its engine predicts."""
        calibration = run.device.calibration if self.takes_probes and run.device else None
        return [] if calibration is None else [calibration]

    def racing(self, run: Run) -> Spec:
        """Return the race of all changes that apply to the run's settings. Raises SpecError where they do not race."""
        raise SpecError("run", "only the settings of a model's measurement race")

    def comparing_speeds(self, spec: Any) -> Spec:
        """Return the spec with the comparison of speeds. Raises SpecError where speeds cannot be compared."""
        if not hasattr(spec, "compare_speed"):
            raise SpecError("run", "only a measurement can leave the speeds out")
        comparing: Spec = replace(spec, compare_speed=True)
        return comparing

    def exit_status(self, found: Any) -> int:
        return exit_status(found)

    def cells(self, run: Run, found: Any) -> list[Cell]:
        return []

    def is_shareable(self, run: Run) -> bool:
        return True

    def place(self, run: Run) -> Place | None:
        """Return where a training like the run's can be estimated; None where it cannot be."""
        if run.device is None:
            return None
        if run.device.kind == "cpu":
            return Place(CPU, run.spec.get("memory_limit_bytes"))
        card = gpu_of(run.device)
        return None if card is None else Place(card.id, run.spec.get("memory_limit_bytes"))
