"""Tries each variant by a start beside today's, races those that train the same, and says what was found."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import TimeIsUp, WorkloadFailed
from ...execution import Emit, Execution
from ...machine.scratch import scratch_folder
from ...machine.watch import MachineWatch, tree_seconds
from ...provenance.read import run_facts
from ...race.course import Course
from ...race.field import TODAY, Entry, Field, NextRound, RacedRound, Timed
from ...race.numbers import Numbers, largest_difference
from ...race.row import FAILED, VariantRow
from ...results.intervals import ENOUGH_ROUNDS
from ...results.speed_rounds import Stage
from ...speed.rounds import describe_load
from ...text.units import format_bytes
from ..devices import others_on_cards
from ..file_changes import WrittenFiles
from ..start.command import begin_protected
from ..start.held import HeldStarts
from ..start.launch import Begin
from .answer import RaceOfScript, coarsest, describe_entry, row_of
from .facts import Facts
from .result import OwnRaceResult
from .spec import OwnRaceSpec
from .starts import OTHER_SEED, StartFailed, Starts
from .trial import Trial, numbers_of
from .variants import WORKERS, Variant

MOST_SECONDS = 1_800.0
"""A race ends after these seconds, or with the time budget."""


def make_faster(
    spec: OwnRaceSpec,
    emit: Emit = lambda _: None,
    *,
    keep: Callable[[OwnRaceResult], None] = lambda _: None,
    begin: Begin | None = None,
    started_as: Mapping[str, Any] | None = None,
    may_overwrite: bool = False,
    keep_outputs: str | None = None,
) -> OwnRaceResult:
    """Find what makes a training faster. Raises CommandUntunable and WorkloadFailed where today's does not train.

    `may_overwrite` and `keep_outputs` as of `tune`.
    """
    execution = Execution(emit, spec.time_budget_seconds)
    files = WrittenFiles(spec.directory or os.getcwd(), execution.log)
    if begin is None:
        begin = begin_protected(spec, files, may_overwrite=may_overwrite, outputs=keep_outputs)
    with scratch_folder() as cache_folder, HeldStarts[tuple[str, ...]](files) as waiting:
        starts = Starts(
            spec=spec,
            execution=execution,
            begin=begin,
            files=files,
            waiting=waiting,
            started_as=started_as or run_facts(),
            cache_folder=cache_folder,
            others=others_on_cards(spec),
        )
        return execution.finish(_Faster(spec, execution, starts).run(), keep)


@dataclass
class _Faster:
    """A run in progress. `base` are the variants that the others are tried on top of."""

    spec: OwnRaceSpec
    execution: Execution
    starts: Starts
    base: Entry = TODAY
    rows: dict[str, VariantRow] = field(default_factory=dict)
    rounds_of_workers: list[RacedRound] = field(default_factory=list)
    rounds: list[RacedRound] = field(default_factory=list)
    is_time_up: bool = False
    trials: dict[Entry, Trial] = field(default_factory=dict)

    def run(self) -> OwnRaceResult:
        self.execution.begin(self.spec)
        self.execution.phase("memory")
        watch = MachineWatch(own_seconds=tree_seconds)
        first = self.starts.first()
        load = describe_load(watch.others_so_far(), self.starts.cores)
        if load is not None and self.starts.device.kind == "cpu":
            self.execution.log(load, "warning")
        self._repeat_today(first)
        self.rows = {each.name: row_of(each, self.facts) for each in self.spec.variants}
        applying = [each for each in self.spec.variants if self.rows[each.name].reason is None]
        alone = [each for each in applying if each.name == WORKERS and self.race.is_waiting]
        if alone:
            fraction = (self.facts.today.waiting_fraction or 0.0) * 100
            self.execution.log(f"waiting for data is the limit ({fraction:.0f} % of a step): more loader workers first")
            self._try(alone, first)
            self._race(self.race.of_workers, self.rounds_of_workers)
            self.base = self.race.base
        if not (self.is_time_up or self.race.is_given_up):
            self._try([each for each in applying if each not in alone], self.trials.get(self.base, first))
            self._race(self.race.of_rest, self.rounds)
        return self._result(first)

    @property
    def facts(self) -> Facts:
        return self.starts.facts

    @property
    def race(self) -> RaceOfScript:
        """Return the race as far as it is run."""
        return RaceOfScript(
            spec=self.spec,
            facts=self.facts,
            rows=tuple(self.rows.values()),
            rounds_of_workers=tuple(self.rounds_of_workers),
            rounds=tuple(self.rounds),
            is_time_up=self.is_time_up,
        )

    def _repeat_today(self, first: Trial) -> None:
        """Note how far the losses of today's training repeat: no variant can be closer to it."""
        self._note(loss_noise=self._noise_to(first, "second"))
        if self.facts.draws_masks:
            self._note(mask_noise=self._noise_to(first, "third", mask_seed=OTHER_SEED) or 0.0)

    def _note(self, **noise: Any) -> None:
        self.starts.facts = replace(self.facts, today=replace(self.facts.today, **noise))

    def _noise_to(self, first: Trial, number: str, *, mask_seed: int | None = None) -> float | None:
        try:
            again = self.starts.trial(TODAY, mask_seed=mask_seed)
        except StartFailed as error:
            raise WorkloadFailed(f"the training as it is failed in its {number} start: {error}") from error
        return largest_difference(again.losses, first.losses)

    def _try(self, variants: Sequence[Variant], beside: Trial) -> None:
        for variant in variants:
            row, name = self.rows[variant.name], variant.name
            try:
                trial = self.starts.trial((*self.base, name))
            except StartFailed as error:
                self.rows[name] = row.failed(str(error))
                self.execution.log(f"{name}: {self.rows[name].reason}", "warning")
                continue
            except TimeIsUp:
                self.is_time_up = True
                return
            self.trials[(*self.base, name)] = trial
            numbers = numbers_of(trial, beside, self.facts.today.loss_noise, variant.rounds_as)
            seconds = max(trial.warm_up_seconds - beside.warm_up_seconds, 0.0)
            self.rows[name] = replace(row, memory_bytes=trial.memory_bytes, numbers=numbers, compile_seconds=seconds)
            self.execution.log(f"{name}: {numbers.sameness.label}, {format_bytes(trial.memory_bytes)}")

    def _race(self, racing: Field, rounds: list[RacedRound]) -> None:
        """Race these variants on top of the base. In the evaluation they are compared with today's own training."""
        if self.is_time_up:
            return
        self.execution.phase("timing")
        course = Course(
            racing=racing,
            execution=self.execution,
            until_seconds=self.execution.seconds + min(MOST_SECONDS, self.execution.seconds_left),
            label=describe_entry,
            begin=lambda step: self._begin(step, rounds),
            time=self._time,
            say=lambda _, timed: self._say(timed),
            failures=StartFailed,
            failed=f": {FAILED}",
            today_failed="the training as it is failed in a later start: ",
            rounds=rounds,
        )
        course.raced()
        self.is_time_up = course.is_time_up
        self.starts.waiting.close()
        for entry, reason in course.reasons.items():
            if len(entry) == 1:
                self.rows[entry[0]] = self.rows[entry[0]].failed(reason)

    @property
    def _number(self) -> int:
        return len(self.rounds_of_workers) + len(self.rounds) + 1

    def _begin(self, step: NextRound, rounds: Sequence[RacedRound]) -> Sequence[Entry]:
        """Return the reverse of the order of the round before, so that a slow drift meets all alike."""
        self.execution.emit_event("timing", stage=step.stage, round=self._number, batch_sizes=[])
        evaluated = sum(each.stage is Stage.EVALUATION for each in rounds)
        if step.stage is Stage.EVALUATION and evaluated % ENOUGH_ROUNDS == 0:
            self.starts.waiting.close()  # new starts, so that none has won by how its memory lies
        return step.entries[::-1] if len(rounds) % 2 else step.entries

    def _time(self, step: NextRound, entry: Entry) -> Timed:
        is_today = step.stage is Stage.EVALUATION and entry == TODAY
        return replace(self.starts.timed(() if is_today else (*self.base, *entry)), entry=entry)

    def _say(self, timed: Sequence[Timed]) -> str:
        shown = ", ".join(f"{describe_entry(each.entry)} {each.samples_per_second:.1f}" for each in timed)
        return f"round {self._number}: {shown} samples/s"

    def _result(self, first: Trial) -> OwnRaceResult:
        race = self.race
        memory_bytes, numbers = self._together(first, race.answer[1])
        return OwnRaceResult(
            spec=self.spec,
            device=self.starts.device,
            environment=self.starts.environment,
            today=self.facts.today,
            facts=self.facts.noted,
            rounds_of_workers=tuple(self.rounds_of_workers),
            rounds=tuple(self.rounds),
            total_seconds=self.execution.seconds,
            starts=len(self.starts.seconds),
            **race.members(memory_bytes, numbers),
        )

    def _together(self, first: Trial, chosen: Entry) -> tuple[int | None, Numbers | None]:
        if len(chosen) < 2:
            return None, None
        try:
            trial = self.starts.trial(chosen)
        except (StartFailed, TimeIsUp) as error:
            self.execution.log(f"{describe_entry(chosen)}: its memory was not measured: {error}", "warning")
            return None, None
        beside = self.trials.get((WORKERS,), first) if WORKERS in chosen else first
        return trial.memory_bytes, numbers_of(trial, beside, self.facts.today.loss_noise, coarsest(chosen))
