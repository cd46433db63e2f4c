"""PURE: the facts of a measurement: the search of a model's sizes, its soaks, and the rounds that compare speeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ...facts.result import Boundary, Point, Probe, Purpose, Reason
from ...facts.speed_rounds import SpeedRound
from ...race.speed.comparison import Comparison, candidates_of
from ...race.speed.rounds import Candidates
from ...race.speed.selection import BLOCK_SECONDS
from ...search.boundary import (
    boundary_cut_short,
    boundary_of_check,
    boundary_of_earlier_run,
    boundary_of_search,
    boundary_of_soak,
    boundary_of_soak_cut_short,
)
from ...search.reserve import reserve_of, sizes_with_reserve
from ...search.unguided import Trial, next_soak_size
from ...settings.spec import RunSpec, soak_steps
from ...trainings.sweep import size_to_explain
from .impossible import Impossible
from .size_facts import SizeFacts, ended_at


@dataclass(frozen=True, slots=True)
class MeasurementFacts(SizeFacts):
    spec: RunSpec

    spec_members: ClassVar = (
        *("model", "device", "precision", "optimizer", "current_batch_size", "max_batch_size", "time_budget_seconds"),
        *("price_per_hour_usd", "hours_per_run", "runs_per_year"),
    )

    @classmethod
    def read_spec(cls, spec: Mapping[str, Any]) -> RunSpec:
        return RunSpec.from_dict(dict(spec))

    def boundaries(self) -> list[Boundary]:
        return self._of_search() if self.spec.check_batch_size is None else self._of_check()

    def _of_search(self) -> list[Boundary]:
        probes, device = self.searched, self.device
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
                had_trained = self.stored.boundary.had_trained_earlier
                possible.append(boundary_of_soak(boundary, soaks, steps, device, had_trained_earlier=had_trained))
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

    def impossible_training(self, boundary: Boundary) -> Iterator[Impossible]:
        yield from ()

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

    def candidates(
        self, known: Comparison, rounds: Sequence[SpeedRound], points: Mapping[int, Point], largest: int
    ) -> Candidates:
        keeping = sizes_with_reserve(points, self.limit_bytes, reserve_of(self.spec, self.limit_bytes))
        is_cpu = self.device.kind == "cpu"
        return candidates_of(points, keeping, self.spec.current_batch_size, known.cores or 1, shares_cores=is_cpu)

    def timing_of(self, timed: Probe, speed: float | None) -> Probe:
        seconds = self.samples_of_a_step(timed) / speed if speed else None
        return replace(timed, samples_per_second=speed, step_seconds=seconds)

    def noted(self, boundary: Boundary) -> Boundary:
        return boundary_of_earlier_run(boundary) if self.stored.boundary.is_of_earlier_run else boundary


def _soaks(probes: Sequence[Probe]) -> Iterator[list[Probe]]:
    """Yield the soaks that may count: each size's last, then without a failed last one: time may have ended in it."""
    counted = list({p.batch_size: p for p in probes}.values())
    yield counted
    if counted and not counted[-1].fits:
        yield counted[:-1]
