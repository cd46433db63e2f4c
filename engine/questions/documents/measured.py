"""The document of a measurement, or of a command or function, read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Self

from ...describe.speed import claim_in
from ...errors import SpecError
from ...facts.figure_kinds import EMULATED, grade_of
from ...facts.memory_breakdown import MemoryBreakdown
from ...facts.not_compared import NotCompared
from ...facts.provenance.parse import OF_ONE_RUN
from ...facts.result import EstimateError, Point, Purpose, Reason, RunResult
from ...facts.result_file import result_in
from ...facts.speed_rounds import SpeedClaim
from ...facts.stats import decisive_probes
from ...settings.catalog.stored_workload import is_own_training
from ...text.from_json import from_json
from ...text.masking import masked
from ...trainings.script.result import Training
from .estimated import EstimatedCard
from .stored import Parts, StoredSpec, from_document, read_parts

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
    """A `RunResult` as it is stored, with a script's `training`. `unreadable` names parts that cannot be read."""

    spec: StoredSpec
    estimate: EstimatedCard | None = None  # type: ignore[assignment]  # read, in place of its document
    unreadable: tuple[str, ...] = ()
    training: Training | None = field(default=None, kw_only=True)

    what_to_change: ClassVar[None] = None
    """Only estimates find it."""

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read the document of any version. Raises ValueError, which names the member that is not as it should be."""
        parts, unreadable = read_parts(document, _PARTS)
        result = from_document(cls, {**document, **dict.fromkeys(_PARTS), "unreadable": ()})
        needed = _NEEDED if is_own_training(result.spec) else _NEEDED + _NEEDED_OF_A_MODEL
        if missing := [name for name in needed if result.spec.get(name) is None]:
            raise ValueError(f"spec.{missing[0]} is missing")
        if (speed := result.speed) is not None and speed.why is None:  # of an earlier build, or compared
            why = NotCompared.said_by(speed.reason, result.current_batch_size)
            result = replace(result, speed=replace(speed, why=why))
        return replace(result, **parts, unreadable=unreadable)

    @classmethod
    def of_answer(cls, result: RunResult, **parts: Any) -> Self:
        """Return the result of a run as it would be read back, with these parts of it."""
        values = {each.name: getattr(result, each.name) for each in fields(RunResult)}
        return cls(**{**values, "spec": StoredSpec(result.spec.to_dict()), **parts})

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
        for name in ("unreadable", "training"):
            del document[name]
        document["estimate"] = self.estimate and self.estimate.to_dict()
        return document if self.training is None else {**document, "training": asdict(self.training)}

    @property
    def ranks(self) -> int:
        """How many devices train together, a rank on each; also those that one device stood in for."""
        return 1 if self.training is None else int(self.spec.get("emulate_ranks") or max(self.training.ranks, 1))

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

    @property
    def limit_bytes(self) -> int:
        return self.waste.capacity_bytes

    @property
    def is_check(self) -> bool:
        return self.spec.get("check_batch_size") is not None

    @property
    def compares_speeds(self) -> bool:
        return bool(self.spec.get("compare_speed", True))

    @property
    def is_speed_measurable(self) -> bool:
        return claim_in(self) is SpeedClaim.FIGURE

    @property
    def lacks_answer(self) -> bool:
        """Whether the speeds were to say which size is better, and did not: timing them again may."""
        is_searched = not self.is_check and self.boundary.reason is not Reason.TIME_BUDGET
        return is_searched and self.compares_speeds and claim_in(self) is SpeedClaim.NOTHING

    @property
    def grade(self) -> str:
        """Whether its figures were measured, or emulated on one device."""
        return grade_of(self.spec)

    @property
    def is_emulated(self) -> bool:
        """Whether one device stood in for ranks: no speed can be compared."""
        return self.grade == EMULATED

    @property
    def roles(self) -> dict[str, int | None]:
        """The batch size of each role. `fastest` is None where a timed size has a higher figure, lest it mislead."""
        points = {"recommended": self.recommended, "fastest": self.fastest, "largest": self.largest}
        roles = {role: None if point is None else point.batch_size for role, point in points.items()}
        timed = [p for p in self.probes if p.purpose is Purpose.TIMING and p.samples_per_second is not None]
        best = max(timed, key=lambda probe: probe.samples_per_second or 0.0, default=None)
        own = None if self.fastest is None else self.fastest.samples_per_second
        if best is not None and own is not None and best.batch_size != roles["fastest"]:
            roles["fastest"] = roles["fastest"] if (best.samples_per_second or 0.0) <= own else None
        return {**roles, "current": self.current_batch_size}

    @property
    def speed_intervals(self) -> tuple[tuple[int, float, float], ...]:
        """The intervals of the sizes that were timed in enough rounds, in rising order."""
        points = [point for point in (self.largest, self.fastest, self.recommended, self.current) if point is not None]
        known = {
            (point.batch_size, point.samples_per_second_low, point.samples_per_second_high)
            for point in points
            if point.samples_per_second_low is not None and point.samples_per_second_high is not None
        }
        return tuple(sorted(known))


def without_secrets(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document of a command with the secrets of its arguments hidden, and any other as it is."""
    spec = document.get("spec") or {}
    return {**document, "spec": {**spec, "command": masked(spec["command"])}} if "command" in spec else document
