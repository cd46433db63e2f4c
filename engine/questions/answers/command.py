"""PURE: the facts of a command or function: each probe is a start, and running out of data is a limit too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, ClassVar

from ...errors import SpecError
from ...facts.not_compared import NotCompared
from ...facts.result import Boundary, Outcome, Point, Probe, Reason
from ...facts.speed_rounds import SpeedRound
from ...race.speed.comparison import Comparison
from ...race.speed.rounds import Candidates
from ...search.allowed_sizes import AllowedSizes
from ...search.boundary import boundary_cut_short, boundary_of_most_starts, boundary_of_search
from ...search.differing_starts import (
    STARTS_OF_RANKS,
    boundary_on_ranks,
    boundary_where_starts_differ,
    do_starts_differ,
    found_where_starts_differ,
    proven_on_ranks,
    without_short_starts,
)
from ...search.unguided import Found
from ...settings.spec import MEMORY_STEPS
from ...trainings.script.judge.differences import Observed
from ...trainings.script.result import Training
from ...trainings.script.sizes.learned_sizes import (
    boundary_of_rule,
    sizes_taken_and_failed,
    wall_of_the_script,
)
from ...trainings.script.sizes.next_start import MOST_STARTS
from ...trainings.script.spec import FUNCTION, FunctionSpec, TuneSpec, read_tuned_spec
from ...trainings.script.speed.to_compare import sizes_to_compare
from .impossible import Impossible
from .size_facts import SizeFacts, ended_at
from .training import impossible_training


@dataclass(frozen=True, slots=True)
class CommandFacts(SizeFacts):
    spec: TuneSpec | FunctionSpec

    spec_members: ClassVar = ("model", "device", "batch", "current_batch_size", "max_batch_size", "compare_speed")

    @classmethod
    def read_spec(cls, spec: Mapping[str, Any]) -> TuneSpec | FunctionSpec:
        made = read_tuned_spec(spec)
        if made.batch == FUNCTION and spec.get("function") is None:
            raise SpecError("spec.function", "is missing")
        made.check_derived(spec)
        return made

    def boundaries(self) -> list[Boundary]:
        probes, maximum, rule = without_short_starts(self.searched), self.spec.max_batch_size, self._rule()
        too_few = [p for p in probes if p.outcome is Outcome.SIZE_LIMIT]
        ended = ended_at([p for p in probes if p not in too_few], maximum) or ended_at(probes, maximum)
        possible = [boundary_cut_short(probes)]

        def among(boundary: Boundary) -> Boundary:
            given = self.spec.allowed_sizes
            return boundary if rule is None else boundary_of_rule(boundary, rule, given, self.searched)

        if rule is not None:
            ended = ended_at(probes, maximum, rule)
        ended = found_where_starts_differ(probes) or ended
        if ended is not None and not (self.is_on_ranks and self._has_too_few_starts(ended.largest)):
            boundary = boundary_where_starts_differ(boundary_of_search(ended, probes, self.device), probes)
            possible.insert(0, among(boundary))
        low = max((p.batch_size for p in probes if p.fits), default=0)
        is_of_ranks = self.is_on_ranks and not (self.training.observed or Observed()).is_varied
        if is_of_ranks and (ended_there := ended_at(proven_on_ranks(probes), maximum, rule)) is not None:
            boundary = boundary_on_ranks(boundary_of_search(ended_there, probes, self.device), probes)
            possible.insert(0, among(boundary))
        if (wall := wall_of_the_script(probes, low)) is not None:
            says = boundary_on_ranks if is_of_ranks else boundary_where_starts_differ
            possible.insert(0, among(says(boundary_of_search(Found(low, wall), probes, self.device), probes)))
        if too_few and low and min(p.batch_size for p in too_few) > low:
            refusal = too_few[0].error_message
            possible.insert(0, among(Boundary(low, False, None, Reason.SIZE_LIMIT, refusal=refusal)))
        if (uncertified := self._as_said(probes)) is not None:
            possible.append(among(uncertified))
        if len(self.searched) >= MOST_STARTS:
            possible.insert(0, among(boundary_of_most_starts(self.searched, self.device)))
        return [each if each.reason is Reason.TIME_BUDGET else self._with_steps(each) for each in possible]

    def _as_said(self, probes: Sequence[Probe]) -> Boundary | None:
        """Return the end that an uncertified run names, where its starts show both sizes; None elsewhere."""
        ended = self.stored.boundary
        largest, refused = ended.largest_batch_size or 0, ended.refused_batch_size or 0
        has_trained = any(p.fits and p.batch_size == largest for p in proven_on_ranks(probes))
        has_failed = any(not p.fits and p.batch_size == refused for p in probes)
        if ended.certified or not has_trained or not has_failed or refused < largest:
            return None
        boundary = boundary_of_search(Found(largest, refused), probes, self.device)
        return replace(boundary_where_starts_differ(boundary, probes), certified=False)

    @property
    def training(self) -> Training:
        """Return what the training showed of itself, with the speeds of its starts. Raises SpecError without any."""
        if self.stored.training is None:
            raise SpecError("training", "is missing")
        return self.stored.training

    @property
    def is_on_ranks(self) -> bool:
        """Whether several real ranks trained, whose starts may differ although their rows do not."""
        return self.training.ranks > 1 and not self.spec.emulated_ranks

    def _has_too_few_starts(self, batch_size: int) -> bool:
        return sum(p.batch_size == batch_size for p in self.searched) < STARTS_OF_RANKS

    def _with_steps(self, boundary: Boundary) -> Boundary:
        made = [p.steps for p in self.searched if p.fits and p.batch_size == boundary.largest_batch_size]
        return replace(boundary, soak_steps=max(made, default=0))

    def _rule(self) -> AllowedSizes | None:
        """Return the rule of the searched sizes: the spec's, or a claimed one as far as the probes can teach it."""
        if self.stored.boundary.allowed_sizes is None or not self._has_learned_sizes(self.stored.boundary):
            return self.spec.allowed_sizes
        try:
            rule = AllowedSizes.parse(self.stored.boundary.allowed_sizes)
        except SpecError:
            return None  # then the claim is none of the possible boundaries
        taken, failed = sizes_taken_and_failed(self.searched)
        return rule if failed and rule.is_consistent(taken, failed) else None

    def _has_learned_sizes(self, boundary: Boundary) -> bool:
        """Whether the searched sizes follow another rule than the spec's."""
        given = self.spec.allowed_sizes
        return boundary.allowed_sizes is not None and boundary.allowed_sizes != (given and given.describe())

    def may_starts_differ(self) -> bool:
        return do_starts_differ(self.searched)  # then no boundary is certified

    def impossible_training(self, boundary: Boundary) -> Iterator[Impossible]:
        yield from impossible_training(self, self.training, boundary, self.spec.catalogue)

    def explained_size(self, boundary: Boundary) -> int | None:
        return None

    def least_soak_steps(self) -> int:
        return MEMORY_STEPS

    def samples_of_a_step(self, probe: Probe) -> int:
        """Return the samples of the nearest number of whole batches."""
        batches = round((probe.samples_per_second or 0) * (probe.step_seconds or 0) / max(probe.batch_size, 1))
        if probe.batch_size == self.stored.boundary.largest_batch_size:
            batches = self.training.micro_batches * self.training.ranks
        return probe.batch_size * max(batches, 1)

    def micro_batches(self, batch_size: int, unknown: int) -> int:
        """Return the batches of a step in the start that measured the size; `unknown` where no step was timed."""
        own = [p for p in self.untimed if p.batch_size == batch_size]
        samples = [(p.samples_per_second or 0.0) * (p.step_seconds or 0.0) for p in own]
        return max((round(each / batch_size) for each in samples), default=0) or unknown

    def least_seconds(self, each: SpeedRound) -> float:
        return 0.0

    def candidates(
        self, known: Comparison, rounds: Sequence[SpeedRound], points: Mapping[int, Point], largest: int
    ) -> Candidates | NotCompared:
        cores, are_held = known.cores or 1, any(b.was_held for each in rounds for b in each.blocks)
        return sizes_to_compare(self.spec, self.device, self.untimed, largest, cores=cores, are_held=are_held)

    def timing_of(self, timed: Probe, speed: float | None) -> Probe:
        samples = timed.batch_size * self.micro_batches(timed.batch_size, 1)
        speed = speed or samples / fmean(timed.timed_step_seconds)
        return replace(timed, samples_per_second=speed, step_seconds=samples / speed)

    def not_compared(self, said: NotCompared, largest: int) -> NotCompared:
        if (said is NotCompared.EMULATED) != bool(self.spec.emulated_ranks):
            return NotCompared.RUN_ENDED
        if not said.is_shown_by_starts:
            return said
        found = sizes_to_compare(self.spec, self.device, self.untimed, largest, are_held=False)
        return found if isinstance(found, NotCompared) else NotCompared.RUN_ENDED

    def training_of(self, boundary: Boundary) -> Training:
        starts = {p.batch_size: p for p in self.untimed}
        return self.training.with_peak(starts.get(boundary.largest_batch_size or 0))

    def noted(self, boundary: Boundary) -> Boundary:
        return self.training_of(boundary).noted(boundary, self.limit_bytes)
