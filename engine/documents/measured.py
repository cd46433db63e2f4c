"""The documents of a measurement, and of a command or function, read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

from ..catalog.stored_workload import is_own_training
from ..errors import SpecError
from ..from_json import from_json
from ..provenance.parse import OF_ONE_RUN
from ..results.memory_breakdown import MemoryBreakdown
from ..results.result import EstimateError, Point, RunResult
from ..results.result_file import result_in
from ..results.stats import decisive_probes
from ..text.masking import masked
from ..tune.training import Training
from .estimated import EstimatedCard
from .stored import Parts, StoredSpec, from_document, unreadable_parts

_NEEDED, _NEEDED_OF_A_MODEL = ("model", "current_batch_size"), ("precision", "optimizer")
_PARTS: Parts = {
    "memory_breakdown": MemoryBreakdown.from_dict,
    "estimate": EstimatedCard.from_dict,
    "estimate_error": partial(from_json, EstimateError),
}
"""Without these the rest is right."""


_OF_THE_DEVICE = ("capacity_bytes", "driver", "compute_capability", "is_shared", "foreign_used_bytes")


@dataclass(frozen=True, slots=True)
class Measured(RunResult):
    """A `RunResult` as it was stored. `unreadable` names the parts that were left out because they cannot be read."""

    spec: StoredSpec
    unreadable: tuple[str, ...] = ()

    what_to_change: ClassVar[None] = None
    """Only estimates find it."""

    @property
    def training(self) -> Training | None:
        """What a command or a function consumed; None for a model of the catalogue."""
        return None

    @property
    def ranks(self) -> int:
        """How many devices train together, a rank on each; also those that one device stood in for."""
        return 1

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read the document of any version. Raises ValueError, which names the member that is not as it should be."""
        unreadable = unreadable_parts(document, _PARTS)
        result = from_document(cls, {**document, **dict.fromkeys(unreadable), "unreadable": ()})
        needed = _NEEDED if is_own_training(result.spec) else _NEEDED + _NEEDED_OF_A_MODEL
        if missing := [name for name in needed if result.spec.get(name) is None]:
            raise ValueError(f"spec.{missing[0]} is missing")
        return replace(result, unreadable=unreadable)

    @classmethod
    def of(cls, document: object, field: str) -> Self:
        """Read a result, also one in a result file or in a run of the portal. Raises SpecError for `field`."""
        content = result_in(document, field)
        try:
            return cls.from_dict(content)
        except ValueError as exc:
            raise SpecError(field, f"is no result of a measurement: {exc}") from exc

    def to_dict(self) -> dict[str, Any]:
        document = RunResult.to_dict(self)
        del document["unreadable"]
        return document

    @property
    def total_seconds(self) -> float:
        return self.timings.total_seconds

    def recorded_facts(self) -> dict[str, Any]:
        """Return what is known of the device and the software, except what is of this one run."""
        device = self.device.to_dict()
        lasting = {name: value for name, value in self.environment.items() if name not in OF_ONE_RUN}
        return {"device_name": self.device.name, **{name: device.get(name) for name in _OF_THE_DEVICE}, **lasting}

    def points(self) -> dict[int, Point]:
        return {size: Point.of(p, self.device) for size, p in decisive_probes(self.probes).items() if p.fits}


@dataclass(frozen=True, slots=True)
class Tuned(Measured):
    """A `TuneResult` as it was stored."""

    training: Training = field(kw_only=True)

    @property
    def ranks(self) -> int:
        return int(self.spec.get("emulate_ranks") or max(self.training.ranks, 1))

    def to_dict(self) -> dict[str, Any]:
        document = Measured.to_dict(self)
        document["training"] = document.pop("training")  # the last, as it was written
        return document


def read_measured(document: object, field: str) -> Measured:
    """Read a result of a measurement, or of a command with what it consumed. Raises SpecError for `field`."""
    found = Measured.of(document, field)
    return Tuned.of(document, field) if is_own_training(found.spec) else found


def without_secrets(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document of a command with the secrets of its arguments hidden, and that of a function as it is."""
    spec = document["spec"]
    return {**document, "spec": {**spec, "command": masked(spec["command"])}} if "command" in spec else document
