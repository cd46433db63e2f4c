"""Tries each variant by a start beside today's, races those that train the same, and says what was found."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ....errors import TimeIsUp, WorkloadFailed
from ....facts.intervals import ENOUGH_ROUNDS
from ....facts.provenance.read import run_facts
from ....facts.speed_rounds import Stage
from ....machine.execution import Emit, Execution
from ....machine.scratch import scratch_folder
from ....machine.watch import MachineWatch, tree_seconds
from ....race.course import Course
from ....race.field import TODAY, Entry, Field, RacedRound, Timed
from ....race.numbers import Numbers, largest_difference
from ....race.row import FAILED, VariantRow
from ....race.speed.rounds import NextRound, describe_load
from ....text.units import format_bytes
from ..devices import others_on_cards
from ..notes.file_changes import WrittenFiles
from ..start.command import begin_protected
from ..start.held import HeldStarts
from ..start.launch import Begin
from .answer import RaceOfScript, coarsest, describe_entry, row_of
from .facts import Trial
from .result import OwnRaceResult
from .spec import OwnRaceSpec
from .starts import OTHER_SEED, StartFailed, Starts
from .variants import BY_NAME, WORKERS

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
    """Find what makes a training faster, with options as of `tune`. Raises CommandUntunable and WorkloadFailed."""
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
        return execution.finish(_Faster(execution, starts).run(), keep)


@dataclass
class _Faster:
    """A run in progress, and the race as far as it is run."""

    execution: Execution
    starts: Starts
    race: RaceOfScript = field(init=False)
    trials: dict[Entry, Trial] = field(default_factory=dict)

    def run(self) -> OwnRaceResult:
        spec = self.starts.spec
        self.execution.begin(spec)
        self.execution.phase("memory")
        watch = MachineWatch(own_seconds=tree_seconds)
        first = self.starts.first()
        load = describe_load(watch.others_so_far(), self.starts.cores)
        if load is not None and self.starts.device.kind == "cpu":
            self.execution.log(load, "warning")
        self._repeat_today(first)
        facts = self.starts.facts
        rows = tuple(row_of(each, facts) for each in spec.variants)
        self.race = RaceOfScript(spec=spec, facts=facts, rows=rows)
        applying = [row for row in rows if row.reason is None]
        alone = [row for row in applying if row.name == WORKERS and self.race.is_waiting]
        if alone:
            fraction = (facts.today.waiting_fraction or 0.0) * 100
            self.execution.log(f"waiting for data is the limit ({fraction:.0f} % of a step): more loader workers first")
            self._try(alone, first)
            self._race("rounds_of_workers", self.race.of_workers)
        if not (self.race.is_time_up or self.race.is_given_up):
            self._try([row for row in applying if row not in alone], self.trials.get(self.race.base, first))
            self._race("rounds", self.race.of_rest)
        return self._result(first)

    def _repeat_today(self, first: Trial) -> None:
        """Note how far the losses of today's training repeat: no variant can be closer to it."""
        facts = self.starts.facts
        today = replace(facts.today, loss_noise=self._noise_to(first, "second"))
        if facts.draws_masks:
            today = replace(today, mask_noise=self._noise_to(first, "third", mask_seed=OTHER_SEED) or 0.0)
        self.starts.facts = replace(facts, today=today)

    def _noise_to(self, first: Trial, number: str, *, mask_seed: int | None = None) -> float | None:
        try:
            again = self.starts.trial(TODAY, mask_seed=mask_seed)
        except StartFailed as error:
            raise WorkloadFailed(f"the training as it is failed in its {number} start: {error}") from error
        return largest_difference(again.losses, first.losses)

    def _try(self, rows: Sequence[VariantRow], beside: Trial) -> None:
        for row in rows:
            name, entry = row.name, (*self.race.base, row.name)
            try:
                trial = self.trials[entry] = self.starts.trial(entry)
            except StartFailed as error:
                self._fill(row.failed(str(error)))
                self.execution.log(f"{name}: {FAILED}{error}", "warning")
                continue
            except TimeIsUp:
                self.race = replace(self.race, is_time_up=True)
                return
            numbers = trial.numbers(beside, self.race.facts.today.loss_noise, BY_NAME[name].rounds_as)
            seconds = max(trial.warm_up_seconds - beside.warm_up_seconds, 0.0)
            self._fill(replace(row, memory_bytes=trial.memory_bytes, numbers=numbers, compile_seconds=seconds))
            self.execution.log(f"{name}: {numbers.sameness.label}, {format_bytes(trial.memory_bytes)}")

    def _fill(self, row: VariantRow) -> None:
        self.race = replace(self.race, rows=tuple(row if each.name == row.name else each for each in self.race.rows))

    def _race(self, part: str, racing: Field) -> None:
        """Race these variants on top of the base. In the evaluation they are compared with today's own training."""
        if self.race.is_time_up:
            return
        self.execution.phase("timing")
        base, waiting, rounds = self.race.base, self.starts.waiting, list[RacedRound]()
        rounds_before = len(self.race.rounds_of_workers)

        def begin(step: NextRound[Entry]) -> Sequence[Entry]:
            """Return the reverse of the order of the round before, so that a slow drift meets all alike."""
            number = rounds_before + len(rounds) + 1
            self.execution.emit_event("timing", stage=step.stage, round=number, batch_sizes=[])
            evaluated = sum(each.stage is Stage.EVALUATION for each in rounds)
            if step.stage is Stage.EVALUATION and evaluated % ENOUGH_ROUNDS == 0:
                waiting.close()  # new starts, so that no entry wins by a lucky memory layout
            return step.entries[::-1] if len(rounds) % 2 else step.entries

        def time(step: NextRound[Entry], entry: Entry) -> Timed:
            is_today = step.stage is Stage.EVALUATION and entry == TODAY
            return replace(self.starts.timed(() if is_today else (*base, *entry)), entry=entry)

        def say(_: NextRound[Entry], timed: Sequence[Timed]) -> str:
            shown = ", ".join(f"{describe_entry(each.entry)} {each.samples_per_second:.1f}" for each in timed)
            return f"round {rounds_before + len(rounds) + 1}: {shown} samples/s"

        course = Course(
            racing=racing,
            execution=self.execution,
            until_seconds=self.execution.seconds + min(MOST_SECONDS, self.execution.seconds_left),
            label=describe_entry,
            begin=begin,
            time=time,
            say=say,
            failures=StartFailed,
            failed=f": {FAILED}",
            today_failed="the training as it is failed in a later start: ",
            rounds=rounds,
        )
        course.raced()
        waiting.close()
        found: dict[str, Any] = {part: tuple(rounds), "is_time_up": course.is_time_up}
        self.race = replace(self.race, **found)
        for row in self.race.rows:
            if (reason := course.reasons.get((row.name,))) is not None:
                self._fill(row.failed(reason))

    def _result(self, first: Trial) -> OwnRaceResult:
        race, facts = self.race, self.race.facts
        memory_bytes, numbers = self._together(first, race.answer[1])
        return OwnRaceResult(
            spec=race.spec,
            device=self.starts.device,
            environment=self.starts.environment,
            today=facts.today,
            facts=facts.noted,
            rounds_of_workers=tuple(race.rounds_of_workers),
            rounds=tuple(race.rounds),
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
        return trial.memory_bytes, trial.numbers(beside, self.race.facts.today.loss_noise, coarsest(chosen))
