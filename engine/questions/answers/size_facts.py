"""The facts of a search for the largest batch size, and the questions that a model and a command answer otherwise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from ...errors import SpecError
from ...facts.memory_breakdown import MemoryBreakdown
from ...facts.not_compared import NotCompared
from ...facts.result import Boundary, DeviceFacts, Outcome, Point, Probe, Purpose, Timings
from ...facts.speed_rounds import SpeedRound
from ...race.speed.comparison import Comparison
from ...race.speed.rounds import Candidates
from ...search.allowed_sizes import AllowedSizes
from ...search.foreign_memory import bytes_taken_by_others
from ...search.unguided import Found
from ...settings.spec import RunSpec, SearchSpec
from ...trainings.script.result import Training
from ...trainings.script.sizes.learned_sizes import failed_by_rule
from ..documents.estimated import EstimatedCard
from ..documents.stored import StoredSpec
from .document import MOST_BLOCKS, MOST_SIZES, read_facts
from .impossible import Impossible

_SEARCHED = (Purpose.SEARCH, Purpose.CONFIRM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a comparison of speeds was made beside, and why there was none."""

    why: NotCompared | None = None
    reason: str | None = None
    """The same in a document of an earlier build."""
    seconds: float = 0.0
    others_cores: float | None = None
    cores: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFacts:
    """The facts of a search as a document has them. `boundary` is its end, where probes allow two."""

    spec: StoredSpec
    device: DeviceFacts
    boundary: Boundary
    probes: tuple[Probe, ...]
    environment: dict[str, Any]
    timings: Timings = field(default_factory=Timings)
    speed: Conditions | None = None
    speed_rounds: tuple[SpeedRound, ...] = ()
    estimate: EstimatedCard | None = None
    memory_breakdown: MemoryBreakdown | None = None
    training: Training | None = None


@dataclass(frozen=True, slots=True)
class SizeFacts(ABC):
    """The facts of a search, with its spec by today's rules."""

    stored: StoredFacts
    spec: Any

    spec_members: ClassVar[tuple[str, ...]]
    """Fields of a spec that every version wrote and that pages read: a document that lacks one is refused."""

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read a document. Raises SpecError, which names the first member that is not as it should be."""
        stored = read_facts(StoredFacts, document)
        _check_rounds(stored.speed_rounds)
        if stored.estimate is not None:
            RunSpec.from_dict(stored.estimate.spec.to_dict())
        spec = cls.read_spec(stored.spec)
        if (missing := next((name for name in cls.spec_members if stored.spec.get(name) is None), None)) is not None:
            raise SpecError(f"spec.{missing}", "is missing")
        return cls(stored, spec)

    @property
    def device(self) -> DeviceFacts:
        return self.stored.device

    @property
    def probes(self) -> tuple[Probe, ...]:
        return self.stored.probes

    @property
    def untimed(self) -> list[Probe]:
        return [p for p in self.probes if p.purpose is not Purpose.TIMING]

    @property
    def searched(self) -> list[Probe]:
        return [p for p in self.probes if p.purpose in _SEARCHED]

    @property
    def limit_bytes(self) -> int:
        """Return what the training may hold of the device."""
        return self.device.limit_bytes or self.device.capacity_bytes

    def is_refused_for_memory(self, probe: Probe) -> bool:
        """Whether a fresh process ran out of memory that no other process held."""
        is_refused = probe.outcome is Outcome.OUT_OF_MEMORY and probe.fresh_process
        return is_refused and not bytes_taken_by_others(probe, self.probes, self.device)

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
    def impossible_training(self, boundary: Boundary) -> Iterator[Impossible]:
        """Yield figures of the training that its starts do not show."""

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
    def candidates(
        self, known: Comparison, rounds: Sequence[SpeedRound], points: Mapping[int, Point], largest: int
    ) -> Candidates | NotCompared:
        """Return the sizes that were compared, or why none were."""

    @abstractmethod
    def timing_of(self, timed: Probe, speed: float | None) -> Probe:
        """Return a timing probe with its speed by the comparison; None for a size without one."""

    def not_compared(self, said: NotCompared, largest: int) -> NotCompared:
        """Return why no speeds were compared. Rounds show why where they were, and say no more."""
        return said

    def training_of(self, boundary: Boundary) -> Training | None:
        """Return what the training showed of itself; None of a model."""
        return None

    @abstractmethod
    def noted(self, boundary: Boundary) -> Boundary:
        """Return the boundary with what the run notes beside what its probes show."""


def ended_at(probes: Sequence[Probe], maximum: int, rule: AllowedSizes | None = None) -> Found | None:
    """Return where the search ended, by `search.unguided` and the sizes that `rule` allows; None where it did not."""
    if rule is not None:
        failed = failed_by_rule(rule, probes)
        probes = [p for p in probes if p.batch_size not in failed]
    low = max((p.batch_size for p in probes if p.fits), default=0)
    high = min((p.batch_size for p in probes if not p.fits and p.batch_size > low), default=None)
    following = low + 1 if rule is None else rule.at_least(low + 1)
    if high is None:
        return Found(low, None) if following is None or following > maximum else None
    is_fresh = any(p.fresh_process and not p.fits and p.batch_size == high for p in probes)
    return Found(low, high) if high == following and is_fresh else None


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
