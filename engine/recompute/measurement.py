"""PURE: the claims of a measurement: the search of a model's sizes, its soaks, and the rounds that compare speeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..breakdown_run import size_to_explain
from ..build_result import METHOD
from ..documents.measured import Measured
from ..plan import soak_steps
from ..results.result import Boundary, Point, Probe, Purpose, Reason
from ..results.speed_rounds import SpeedRound
from ..results.stats import samples_per_second
from ..search.boundary import (
    OF_EARLIER_RUN,
    boundary_cut_short,
    boundary_of_check,
    boundary_of_search,
    boundary_of_soak,
    boundary_of_soak_cut_short,
)
from ..search.reserve import sizes_with_reserve
from ..search.unguided import Trial, next_soak_size
from ..spec import RunSpec
from ..speed.comparison import Comparison, candidates_of, concluded
from ..speed.reasons import OF_MODELS
from ..speed.rounds import Candidates, Round, RunRound
from ..speed.selection import BLOCK_SECONDS, SpeedVerdict, replay
from ..text.wording import Text, is_one_of
from .boundary import ended_at, searched
from .claims import Claims, Compared
from .contradiction import Contradiction


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementClaims(Claims):
    """The claims of a measurement."""

    spec: RunSpec

    document: ClassVar = Measured
    spec_members: ClassVar = (
        *("model", "device", "precision", "optimizer", "current_batch_size", "max_batch_size", "time_budget_seconds"),
        *("price_per_hour_usd", "hours_per_run", "runs_per_year"),
    )
    method: ClassVar[Text] = METHOD

    @classmethod
    def read_spec(cls, spec: Mapping[str, Any]) -> RunSpec:
        return RunSpec.from_dict(dict(spec))

    def boundaries(self) -> list[Boundary]:
        return self._of_search() if self.spec.check_batch_size is None else self._of_check()

    def _of_search(self) -> list[Boundary]:
        probes, device = searched(self.probes), self.device
        steps = soak_steps(self.spec.soak_steps, device.kind)
        found = ended_at(probes, self.spec.max_batch_size)
        if found is None:
            return [boundary_cut_short(probes)]
        boundary = boundary_of_search(found, probes, device)
        all_soaks = [p for p in self.probes if p.purpose is Purpose.SOAK]
        if not boundary.largest_batch_size:
            return [boundary, boundary_cut_short(probes)]
        possible = []
        for soaks in _soaks(all_soaks):
            if any(p.batch_size > boundary.largest_batch_size for p in soaks):
                continue  # a soak begins with the largest size, and goes down
            if next_soak_size([Trial(p.batch_size, p.fits) for p in soaks], boundary.largest_batch_size) is None:
                whens = ("", " in an earlier attempt")  # a document does not show which of its probes are carried over
                possible += [boundary_of_soak(boundary, soaks, steps, device, when) for when in whens]
            else:
                possible.append(boundary_of_soak_cut_short(boundary, soaks, steps, probes))
        return possible if all_soaks and possible else [*possible, boundary_cut_short(probes)]

    def _of_check(self) -> list[Boundary]:
        cut_short = Boundary(None, certified=False, refused_batch_size=None, reason=Reason.TIME_BUDGET)
        size = self.spec.check_batch_size
        probes = [p for p in self.probes if p.batch_size == size and p.purpose is Purpose.SOAK]
        if not probes:
            return [cut_short]
        steps = soak_steps(self.spec.soak_steps, self.device.kind)
        return [boundary_of_check(probes[-1], steps, self.probes, self.device), cut_short]

    def may_starts_differ(self) -> bool:
        return False

    def explained_size(self, boundary: Boundary) -> int | None:
        return size_to_explain(boundary, self.probes, is_search=self.spec.check_batch_size is None)

    def least_soak_steps(self) -> int:
        return soak_steps(self.spec.soak_steps, self.device.kind)

    def samples_of_a_step(self, probe: Probe) -> int:
        return probe.batch_size * self.spec.accumulation_steps

    def micro_batches(self, batch_size: int, unknown: int) -> int:
        return self.spec.accumulation_steps

    def least_seconds(self, each: SpeedRound) -> float:
        return BLOCK_SECONDS[each.stage] * len(each.blocks)

    def compare(self, facts: Comparison, points: Mapping[int, Point], largest: int) -> Compared:
        keeping = sizes_with_reserve(points, self.limit_bytes, self.spec.reserve_fraction)
        is_cpu = self.device.kind == "cpu"
        candidates = candidates_of(points, keeping, self.spec.current_batch_size, facts.cores or 1, shares_cores=is_cpu)
        return _compare_again(self.speed_rounds, facts, candidates)

    def untrue_speed(
        self, path: str, claimed: float, samples: int, seconds: Sequence[float]
    ) -> Iterator[Contradiction]:
        slowest, fastest = (samples_per_second(samples, pick(seconds)) for pick in (max, min))
        if not slowest * (1 - 1e-6) <= claimed <= fastest * (1 + 1e-6):
            yield Contradiction(path, claimed, [slowest, fastest])

    def untrue_training(self) -> Iterator[Contradiction]:
        yield from ()

    def may_have_reason(self, reason: str, largest: int) -> bool:
        return is_one_of(reason, OF_MODELS)

    def may_note(self, notes: Sequence[str], claimed: Boundary) -> bool:
        return all(note == OF_EARLIER_RUN for note in notes)


def _soaks(probes: Sequence[Probe]) -> Iterator[list[Probe]]:
    """Yield the soaks that may have counted: the last one of each size, then the same without a last one that failed.

    A soak is repeated where others held memory, and the last one of its size counts, unless time ended during it.
    """
    counted = list({p.batch_size: p for p in probes}.values())
    yield counted
    if counted and not counted[-1].fits:
        yield counted[:-1]


def _compare_again(given: Sequence[SpeedRound], facts: Comparison, candidates: Candidates) -> Compared:
    """Decide again. Each round must be the one that those before it called for, so that the document omits none.

    Earlier builds went on beside work that stays, as where no cores are shared.
    """
    rounds = [Round.from_stored(each) for each in given]
    gone = sorted(each.left_out for each in rounds if each.left_out is not None)
    if gone != sorted(facts.left_out):
        return facts, [Contradiction("speed.left_out_batch_sizes", sorted(facts.left_out), gone)]
    decisions = replay(candidates, rounds)
    patient = replay(replace(candidates, shares_cores=False), rounds)
    try:
        for number, (each, step, longer) in enumerate(zip(rounds, decisions, patient, strict=False)):
            wanted = _not_called_for(each, step)
            if wanted is not None and _not_called_for(each, longer) is not None:
                return facts, [Contradiction(f"speed_rounds[{number}]", _described(each), wanted)]
        step = next(decisions)
    except (KeyError, IndexError, ValueError):
        return facts, [Contradiction("speed_rounds", "rounds of other sizes", "rounds that a decision can rest on")]
    return (concluded(replace(facts, reason=None), step) if isinstance(step, SpeedVerdict) else facts), []


def _not_called_for(given: Round, step: RunRound | SpeedVerdict | None) -> list[Any] | str | None:
    """Return what was called for instead of this round; None where this round was called for.

    Where a size was left out, some of the others were run before it, and the size itself was called for.
    """
    if not isinstance(step, RunRound):
        return "none: it was decided"
    sizes = sorted(b.batch_size for b in given.blocks)
    is_cut_short = given.left_out in step.sizes and {*sizes} <= {*step.sizes} - {given.left_out}
    is_whole = given.left_out is None and sizes == sorted(step.sizes)
    is_called_for = given.stage is step.stage and (is_whole or is_cut_short)
    return None if is_called_for else [step.stage, sorted(step.sizes)]


def _described(given: Round) -> list[Any]:
    sizes = sorted(b.batch_size for b in given.blocks)
    return [given.stage, sizes] if given.left_out is None else [given.stage, sizes, f"left out: {given.left_out}"]
