"""What a result of another machine claims, and the questions that a measurement and a command answer otherwise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from ..documents.estimated import EstimatedCard
from ..documents.measured import Measured
from ..errors import SpecError
from ..results.result import Boundary, Point, Probe, RunResult
from ..results.speed_rounds import SpeedRound
from ..spec import RunSpec, SearchSpec
from ..speed.comparison import Comparison
from ..text.wording import Text
from .contradiction import Contradiction
from .document import MOST_BLOCKS, MOST_SIZES, read_claims

Compared = tuple[Comparison, list[Contradiction]]
"""The comparison that the rounds show, and what is wrong with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims(RunResult, ABC):
    """A result as its document claims it, its spec by today's rules.

    `given` names its members, `predicted` is its estimate, and `untrue` lists what contradicts other members.
    """

    given: Collection[str]
    predicted: EstimatedCard | None
    untrue: Sequence[Contradiction]

    document: ClassVar[type[Measured]]
    spec_members: ClassVar[tuple[str, ...]]
    """Fields of a spec that every version wrote and that pages read: a document that lacks one is refused."""
    method: ClassVar[Text]
    """How the speeds of such a run are measured."""

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read a document. Raises SpecError, which names the first member that is not as it should be."""
        stored, untrue = read_claims(cls.document, document)
        _check_rounds(stored.speed_rounds)
        predicted = None
        if stored.estimate is not None:
            predicted, of_the_estimate = read_claims(EstimatedCard, stored.estimate, "estimate")
            RunSpec.from_dict(predicted.spec.to_dict())
            untrue += of_the_estimate
        spec = cls.read_spec(stored.spec)
        for name in cls.spec_members:
            if stored.spec.get(name) is None:
                raise SpecError(f"spec.{name}", "is missing")
        own = {each.name for each in fields(cls)}
        read = {each.name: getattr(stored, each.name) for each in fields(stored) if each.name in own}
        return cls(**{**read, "spec": spec}, given=document.keys(), predicted=predicted, untrue=untrue)

    @property
    def limit_bytes(self) -> int:
        """Return what the training may hold of the device."""
        return self.device.limit_bytes or self.device.capacity_bytes

    @classmethod
    @abstractmethod
    def read_spec(cls, spec: Mapping[str, Any]) -> SearchSpec:
        """Read the spec. Raises SpecError, naming the field."""

    @abstractmethod
    def boundaries(self) -> list[Boundary]:
        """Return the boundaries that the probes allow, the strongest first."""

    @abstractmethod
    def may_starts_differ(self) -> bool:
        """Whether a size may have trained above one that was refused."""

    @abstractmethod
    def explained_size(self, boundary: Boundary) -> int | None:
        """Return the size whose memory is explained; None where no size is known."""

    @abstractmethod
    def least_soak_steps(self) -> int:
        """Return the fewest steps that a soak trains."""

    @abstractmethod
    def samples_of_a_step(self, probe: Probe) -> int:
        """Return the samples of all ranks and micro-batches."""

    @abstractmethod
    def micro_batches(self, batch_size: int, unknown: int) -> int:
        """Return the batches of a step over all ranks; `unknown` where no probe shows them."""

    @abstractmethod
    def least_seconds(self, each: SpeedRound) -> float:
        """Return how long a round takes at least."""

    @abstractmethod
    def compare(self, facts: Comparison, points: Mapping[int, Point], largest: int) -> Compared:
        """Decide the comparison of speeds again."""

    @abstractmethod
    def untrue_speed(
        self, path: str, claimed: float, samples: int, seconds: Sequence[float]
    ) -> Iterator[Contradiction]:
        """Yield the speed of a timing probe where it is not that of its steps' seconds."""

    @abstractmethod
    def untrue_training(self) -> Iterator[Contradiction]:
        """Yield what is said of the training that its starts do not show."""

    @abstractmethod
    def may_have_reason(self, reason: str, largest: int) -> bool:
        """Whether this can be why a run says nothing of speeds. Rounds show why where sizes were compared."""

    @abstractmethod
    def may_note(self, notes: Sequence[str], claimed: Boundary) -> bool:
        """Whether a run can have noted this of itself beside what its probes show."""


def _check_rounds(rounds: Sequence[SpeedRound]) -> None:
    blocks = 0
    for place, each in enumerate(rounds):
        sizes = [block.batch_size for block in each.blocks]
        blocks += len(sizes)
        least = 0 if each.left_out is not None else 1
        if not least <= len(set(sizes)) == len(sizes) <= MOST_SIZES:
            raise SpecError(f"speed_rounds[{place}].blocks", "must have one block for each size")
    if blocks > MOST_BLOCKS:
        raise SpecError("speed_rounds", f"have more than {MOST_BLOCKS:,} blocks: a comparison ends before")
