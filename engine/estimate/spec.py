"""What is requested of an estimate: the training, the card, and what else is estimated of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import SpecError
from ..settings.setting import Role, setting
from ..settings.spec import RunSpec
from ..settings.spec_checks import settings_of
from .frontier import MAX_LENGTHS, specs_of
from .gpus import find
from .largest import LABELS, LargestOf, candidates_of
from .predict import check
from .what_to_change import Scope

ALL_GPUS = "all"
"""The `gpu` of an estimate for every card of the catalogue."""
CPU = "cpu"
"""The `gpu` of an estimate for a CPU, with the memory limit of its spec."""
_NO_SIZES = "must be a list of whole numbers, such as [128, 256, 512]"


@dataclass(frozen=True, slots=True)
class EstimateSpec:
    """An estimate for a catalogue's card, `all` or `cpu`. Raises SpecError for a card unknown, or unable to do it."""

    training: RunSpec
    gpu: str = setting(
        Role.ESTIMATE,
        "GPU to estimate for",
        "Of an estimate: a GPU of /api/v1/gpus/, all of them, or cpu.",
        default=ALL_GPUS,
    )
    what_to_change: str = setting(
        Role.ESTIMATE,
        "What to change",
        "Of an estimate for one GPU: also estimate other settings, and name the smallest changes with which "
        "current_batch_size fits. first: up to the first that does; single: each by itself; grid: all.",
        default="",
    )
    frontier: tuple[int, ...] = setting(
        Role.ESTIMATE,
        "Lengths or image sizes to compare",
        f"Of an estimate for one GPU: 2 to {MAX_LENGTHS} different lengths (of images: sizes in pixels a side). "
        "The largest batch at each is estimated too, with a budget of tokens or pixels a batch: `result.frontier`.",
        default=(),
        hint=f"For one GPU: 2 to {MAX_LENGTHS} sizes, the largest batch at each, and a budget of tokens or pixels per "
        "batch.",
    )
    largest: str = setting(
        Role.ESTIMATE,
        "Search the largest",
        "Of an estimate for one GPU: search the largest value of this setting (model: the largest of its family) "
        "with which current_batch_size (then 1 where left out) fits with the margin: `result.largest`.",
        default="",
        hint="For one GPU: the largest with which your batch size today fits with the margin.",
        choices={"": "no: only the largest batch size", **LABELS},
    )

    def __post_init__(self) -> None:
        for name in ("gpu", "what_to_change", "largest"):
            if not isinstance(getattr(self, name), str):
                raise SpecError(name, "must be text")
        if not all(type(size) is int for size in self.frontier):
            raise SpecError("frontier", _NO_SIZES)
        for name, offered in (("what_to_change", Scope), ("largest", LargestOf)):
            if getattr(self, name) and getattr(self, name) not in list(offered):
                raise SpecError(name, f"must be one of {', '.join(offered)}")
        for name in ("what_to_change", "frontier", "largest"):
            if getattr(self, name) and self.gpu == ALL_GPUS:
                raise SpecError(name, "is for one GPU: name it in gpu")
        if len(set(self.frontier)) != len(self.frontier):
            raise SpecError("frontier", f"give each size once: 2 to {MAX_LENGTHS} different ones, such as 128,256,512")
        if self.frontier:
            specs_of(self.training, self.frontier)
        if self.largest:
            candidates_of(self.training, LargestOf(self.largest))
        if self.gpu != ALL_GPUS:
            check(self.training, None if self.gpu == CPU else find(self.gpu))

    def to_dict(self) -> dict[str, Any]:
        """Return the members of its training, with its own beside them."""
        own = {name: getattr(self, name) for name in OWN}
        return self.training.to_dict() | own | {"frontier": sorted(self.frontier)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EstimateSpec:
        """Build a spec from JSON; without a batch size `largest` is of a batch of 1. Raises SpecError."""
        own = {name: data[name] for name in OWN if name in data}
        if not isinstance(sizes := own.get("frontier", []), list | tuple):
            raise SpecError("frontier", _NO_SIZES)
        batch = {"current_batch_size": 1} if own.get("largest") else {}
        given = {name: value for name, value in {**batch, **data}.items() if name not in OWN}
        return cls(RunSpec.from_dict(given), **{**own, "frontier": tuple(sizes)})


SETTINGS = settings_of(EstimateSpec)
OWN = tuple(SETTINGS)
"""The members of its document that a spec of the training alone does not have."""


def read_training(spec: Mapping[str, Any]) -> RunSpec:
    """Read the training of an estimate's document, or of a measurement's. Raises SpecError, naming the field."""
    return RunSpec.from_dict({name: value for name, value in spec.items() if name not in OWN})
