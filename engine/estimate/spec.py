"""What is requested of an estimate: the training, the card, and what else is estimated of them."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import SpecError
from ..spec import RunSpec
from .frontier import MAX_LENGTHS, specs_of
from .gpus import find
from .predict import check
from .what_to_change import Scope

ALL_GPUS = "all"
"""The `gpu` of an estimate for every card of the catalogue."""
CPU = "cpu"
"""The `gpu` of an estimate for a CPU, with the memory limit of its spec."""


@dataclass(frozen=True, slots=True)
class EstimateSpec:
    """An estimate of a training for a card of the catalogue, for `all` or for `cpu`.

    `what_to_change` is a `Scope`: the settings with which today's batch size would fit one card are estimated too.
    `frontier` are lengths, or image sizes: the largest batch at each on one card is estimated too.
    Raises SpecError for a card that is not in the catalogue, with the nearest names, and for what the card cannot do.
    """

    training: RunSpec
    gpu: str = ALL_GPUS
    what_to_change: str = ""
    frontier: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.what_to_change and self.what_to_change not in list(Scope):
            raise SpecError("what_to_change", f"must be one of {', '.join(Scope)}")
        for name in ("what_to_change", "frontier"):
            if getattr(self, name) and self.gpu == ALL_GPUS:
                raise SpecError(name, "is for one card: name it in gpu")
        if len(set(self.frontier)) != len(self.frontier):
            raise SpecError("frontier", f"give each size once: 2 to {MAX_LENGTHS} different ones, such as 128,256,512")
        if self.frontier:
            specs_of(self.training, self.frontier)
        if self.gpu != ALL_GPUS:
            check(self.training, None if self.gpu == CPU else find(self.gpu))
