"""The document of an estimate, for one card or several, read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

from ...estimate.frontier import Frontier
from ...estimate.largest import Largest
from ...estimate.types import Estimate, EstimateAt
from ...estimate.what_to_change import WhatToChange
from ...facts.result import Probe
from ...facts.stats import memory_between
from ...text.from_json import from_json
from .stored import Parts, ReadBack, StoredSpec, from_document, read_parts


@dataclass(frozen=True, slots=True)
class EstimatedCard(Estimate, ReadBack):
    """An `Estimate` as it was stored: of a card or a model that may be in no catalogue any more."""

    spec: StoredSpec  # type: ignore[assignment]  # has the same members

    def check(self) -> None:
        if any(at.batch_size < 1 for at in self.at):
            raise ValueError("a batch size is below 1")
        if self.breakdown is not None:
            self.breakdown.of_known_kinds()

    @property
    def is_approximate(self) -> bool:
        """Whether the training was traced on fake CPU tensors instead of a GPU's, whose operators differ."""
        return self.method.startswith("approximate")

    @property
    def points(self) -> tuple[EstimateAt, ...]:
        return tuple(sorted(self.at, key=lambda at: at.batch_size))

    @property
    def capacity_bytes(self) -> int:
        """The full length of the bars: the memory of the card, or the memory limit."""
        return self.spec.memory_limit_bytes or self.gpu.total_bytes

    def memory_bytes(self, point: EstimateAt) -> int:
        """Return the memory that counts: for a whole card the driver's figure, for a limit the allocator's."""
        is_whole = self.spec.memory_limit_bytes is None and point.device_used_bytes is not None
        return point.device_used_bytes or 0 if is_whole else point.memory_bytes

    def memory_at_most(self, batch_size: int) -> int | None:
        """Return the memory of a size, or a bound on it from the estimated sizes around; None above all that fit."""
        taken = memory_between({at.batch_size: self.memory_bytes(at) for at in self.at if at.fits}, batch_size)
        return None if taken is None else round(taken)


@dataclass(frozen=True, slots=True)
class StoredFrontier(Frontier, ReadBack):
    spec: StoredSpec  # type: ignore[assignment]  # has the same members


_PARTS: Parts = {
    "what_to_change": partial(from_json, WhatToChange),
    "frontier": StoredFrontier.from_dict,
    "largest": partial(from_json, Largest),
}


@dataclass(frozen=True, slots=True)
class Estimated:
    """The estimates of a run by card. `smallest_gpu` is the smallest that trains today's size; None for one card."""

    estimates: tuple[EstimatedCard, ...]
    what_to_change: WhatToChange | None = None
    frontier: StoredFrontier | None = None
    largest: Largest | None = None
    smallest_gpu: str | None = None

    probes: ClassVar[tuple[Probe, ...]] = ()
    """It tries no batch size."""

    @property
    def spec(self) -> StoredSpec:
        return self.estimates[0].spec

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read the document of any version, or one card's part alone. Raises ValueError, which names the member."""
        given = document if "estimates" in document else {"estimates": [document]}
        parts, _ = read_parts(given, _PARTS)
        made = from_document(cls, {**given, **dict.fromkeys(_PARTS)})
        if not made.estimates:
            raise ValueError("an estimate without any card")
        for each in made.estimates:
            each.check()
        return replace(made, **parts)

    def recorded_facts(self) -> dict[str, Any]:
        gpu, versions = self.estimates[0].gpu, self.estimates[0].versions
        return {"device_name": gpu.name, "capacity_bytes": gpu.total_bytes, **versions}

    def to_dict(self) -> dict[str, Any]:
        document: dict[str, Any] = {"estimates": [each.to_dict() for each in self.estimates]}
        for name in _PARTS:
            if (part := getattr(self, name)) is not None:
                document[name] = part.to_dict()
        if self.smallest_gpu is not None:
            document["smallest_gpu"] = self.smallest_gpu
        return document
