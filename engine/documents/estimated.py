"""The document of an estimate, for one card or several, read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from ..estimate.frontier import Frontier
from ..estimate.largest import Largest
from ..estimate.types import Estimate
from ..estimate.what_to_change import WhatToChange
from ..from_json import from_json
from ..results.result import Probe
from .stored import Parts, StoredSpec, from_document, unreadable_parts


@dataclass(frozen=True, slots=True)
class EstimatedCard(Estimate):
    """An `Estimate` as it was stored: of a card or a model that may be in no catalogue any more."""

    spec: StoredSpec  # type: ignore[assignment]  # has the same members

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read the estimate for one card. Raises ValueError, which names the member that is not as it should be."""
        made = from_document(cls, document)
        made.check()
        return made

    def check(self) -> None:
        """Raise ValueError for what no estimate holds: a batch size below 1, a kind of memory that has no name."""
        if any(at.batch_size < 1 for at in self.at):
            raise ValueError("a batch size is below 1")
        if self.breakdown is not None:
            self.breakdown.of_known_kinds()


@dataclass(frozen=True, slots=True)
class StoredFrontier(Frontier):
    """A `Frontier` as it was stored."""

    spec: StoredSpec  # type: ignore[assignment]  # has the same members

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read it. Raises ValueError, which names the member that is not as it should be."""
        return from_document(cls, document)


_PARTS: Parts = {
    "what_to_change": partial(from_json, WhatToChange),
    "frontier": StoredFrontier.from_dict,
    "largest": partial(from_json, Largest),
}


@dataclass(frozen=True, slots=True)
class Estimated:
    """The estimates of a run, one for each card. What was not requested besides them is None.

    `smallest_gpu` is the card with the least memory that trains today's size with the margin; None for one card.
    """

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
        made = from_document(cls, {**given, **dict.fromkeys(unreadable_parts(given, _PARTS))})
        if not made.estimates:
            raise ValueError("an estimate without any card")
        for each in made.estimates:
            each.check()
        return made

    def recorded_facts(self) -> dict[str, Any]:
        """Return what is known of the first card and the software."""
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
