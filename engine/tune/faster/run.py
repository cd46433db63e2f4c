"""Tries each variant by a start beside today's, races those that train the same, and says what was found."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import TimeIsUp, WorkloadFailed
from ...execution import Emit, Execution
from ...machine.scratch import scratch_folder
from ...machine.watch import MachineWatch, tree_seconds
from ...provenance.read import run_facts
from ...race.field import TODAY, Entry, NextRound, RacedRound, RaceVerdict, Timed, mean_others_cores
from ...race.numbers import Numbers, largest_difference
from ...race.row import VariantRow
from ...race.rule import decide, does_load_stay
from ...race.text import lines_to_paste
from ...results.intervals import ENOUGH_ROUNDS
from ...results.savings import savings
from ...results.speed_rounds import SpeedClaim, Stage
from ...spec import SCHEMA
from ...speed.rounds import describe_load
from ...text.units import format_bytes
from ..devices import others_on_cards
from ..file_changes import WrittenFiles
from ..start.command import begin_protected
from ..start.held import HeldStarts
from ..start.launch import Begin
from .answer import (
    FAILED,
    GIVEN_UP,
    NOTHING_TIMED,
    TIME_IS_UP,
    answer_of,
    coarsest,
    describe_entry,
    field_of,
    is_raced,
    order_of_round,
    race_waits_for_workers,
    row_of,
    step_seconds_on,
    together,
    verdict_of,
    with_speed,
    with_start,
)
from .facts import Facts
from .result import OwnRaceResult, Today
from .spec import OwnRaceSpec
from .starts import OTHER_SEED, StartFailed, Starts
from .trial import Trial, numbers_of
from .variants import BY_NAME, WORKERS, Variant

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
    noise: float | None = None
    step_seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)
    trials: dict[Entry, Trial] = field(default_factory=dict)

    def run(self) -> OwnRaceResult:
        self.execution.emit_event("started", schema=SCHEMA, spec=self.spec.to_dict())
        self.execution.phase("memory")
        watch = MachineWatch(own_seconds=tree_seconds)
        first = self.starts.first()
        load = describe_load(watch.others_so_far(), self.starts.cores)
        if load is not None and self.starts.device.kind == "cpu":
            self.execution.log(load, "warning")
        self.starts.step_seconds = first.step_seconds
        today = self._today(first)
        self.rows = {each.name: row_of(each, self.facts) for each in self.spec.variants}
        applying = [each for each in self.spec.variants if self.rows[each.name].reason is None]
        at_workers: RaceVerdict | None = None
        at_rest: RaceVerdict | None = None
        if race_waits_for_workers(today, self.rows):
            at_workers = self._loader_first(today, first)
            applying = [each for each in applying if each.name != WORKERS]
        self.step_seconds = step_seconds_on(self.base, today, at_workers)
        if not self.remarks:
            at_rest = self._raced(applying, self.trials.get(self.base, first), self.rounds)
        return self._result(today, first, at_workers, at_rest)

    @property
    def facts(self) -> Facts:
        return self.starts.known_facts

    def _today(self, first: Trial) -> Today:
        self.noise = self._noise_to(first, "second")
        if self.facts.draws_masks:
            self.starts.facts = replace(
                self.facts, mask_noise=self._noise_to(first, "third", mask_seed=OTHER_SEED) or 0.0
            )
        evidence, ranks = first.evidence, max(len(first.evidence.ranks), 1)
        return Today(
            batch_size=self.starts.batch_size,
            is_batch_size_guessed=self.starts.is_own_size_guessed,
            samples_per_step=self.starts.batch_size * evidence.micro_batches * ranks,
            ranks=ranks,
            memory_bytes=first.memory_bytes,
            step_seconds=first.step_seconds,
            waiting_fraction=evidence.waiting_fraction,
            loss_noise=self.noise,
            mask_noise=self.facts.mask_noise,
            cores=self.starts.cores,
        )

    def _noise_to(self, first: Trial, number: str, *, mask_seed: int | None = None) -> float | None:
        try:
            again = self.starts.trial(TODAY, mask_seed=mask_seed)
        except StartFailed as error:
            raise WorkloadFailed(f"the training as it is failed in its {number} start: {error}") from error
        return largest_difference(again.compared_losses, first.compared_losses)

    def _loader_first(self, today: Today, first: Trial) -> RaceVerdict:
        """Race the workers alone. The others are not tried where other work disturbed every round."""
        fraction = (today.waiting_fraction or 0.0) * 100
        self.execution.log(f"waiting for data is the limit ({fraction:.0f} % of a step): more loader workers first")
        verdict = self._raced([BY_NAME[WORKERS]], first, self.rounds_of_workers)
        self.base = verdict.chosen
        is_cpu = self.starts.device.kind == "cpu"
        racing = field_of((WORKERS,), cores=self.starts.cores, shares_cores=is_cpu)
        if does_load_stay(racing, self.rounds_of_workers):
            self.remarks.append(GIVEN_UP)
        return verdict

    def _raced(self, variants: Sequence[Variant], beside: Trial, rounds: list[RacedRound]) -> RaceVerdict:
        try:
            self._try(variants, beside)
        except TimeIsUp:
            self.remarks.append(TIME_IS_UP)
            return NOTHING_TIMED
        return self._race([each.name for each in variants if is_raced(self.rows[each.name])], rounds)

    def _try(self, variants: Sequence[Variant], beside: Trial) -> None:
        for variant in variants:
            row, name = self.rows[variant.name], variant.name
            try:
                trial = self.starts.trial((*self.base, name))
            except StartFailed as error:
                self.rows[name] = replace(row, reason=f"{FAILED}{error}")
                self.execution.log(f"{name}: {self.rows[name].reason}", "warning")
                continue
            self.trials[(*self.base, name)] = trial
            numbers = numbers_of(trial, beside, self.noise, variant.rounds_as)
            self.rows[name] = with_start(
                row,
                self.facts,
                beside=self.base,
                memory_bytes=trial.memory_bytes,
                numbers=numbers,
                noise=self.noise,
                compile_seconds=max(trial.warm_up_seconds - beside.warm_up_seconds, 0.0),
            )
            self.execution.log(f"{name}: {numbers.sameness.label}, {format_bytes(trial.memory_bytes)}")

    def _race(self, names: Sequence[str], rounds: list[RacedRound]) -> RaceVerdict:
        """Race these variants on top of the base. In the evaluation they are compared with today's own training."""
        self.execution.phase("timing")
        left = min(MOST_SECONDS, self.execution.seconds_left)
        is_cpu, cores = self.starts.device.kind == "cpu", self.starts.cores
        racing = field_of(names, cores=cores, shares_cores=is_cpu, most_seconds=left)
        try:
            while isinstance(step := decide(racing, rounds), NextRound):
                number = len(self.rounds_of_workers) + len(self.rounds) + 1
                self.execution.emit_event("timing", stage=step.stage, round=number, batch_sizes=[])
                evaluated = sum(each.stage is Stage.EVALUATION for each in rounds)
                rounds.append(self._round(step, len(rounds), evaluated, number))
        except TimeIsUp:
            self.remarks.append(TIME_IS_UP)
            step = verdict_of(racing, rounds)
        self.starts.waiting.close()
        for name in names:
            row, base = self.rows[name], self.base
            self.rows[name] = with_speed(row, rounds, racing, base=base, step_seconds=self.step_seconds)
        return step

    def _round(self, step: NextRound, place: int, evaluated: int, number: int) -> RacedRound:
        timed, began, failed = [], time.monotonic(), None
        if step.stage is Stage.EVALUATION and evaluated % ENOUGH_ROUNDS == 0:
            self.starts.waiting.close()  # new starts, so that none has won by how its memory lies
        workers = max(self.facts.workers_to_try, self.facts.workers)
        for entry in order_of_round(step, place):
            is_today, start_began = step.stage is Stage.EVALUATION and entry == TODAY, time.monotonic()
            try:
                speed, others, was_held = self.starts.speed(() if is_today else (*self.base, *entry), workers)
            except StartFailed as error:
                if entry == TODAY:
                    raise WorkloadFailed(f"the training as it is failed in a later start: {error}") from error
                self._fail(entry, str(error))
                failed = entry
                break
            timed.append(Timed(entry, speed, others, time.monotonic() - start_began, was_held))
        shown = ", ".join(f"{describe_entry(each.entry)} {each.samples_per_second:.1f}" for each in timed)
        self.execution.log(f"round {number}: {shown} samples/s")
        return RacedRound(step.stage, step.generation, tuple(timed), time.monotonic() - began, failed)

    def _fail(self, entry: Entry, why: str) -> None:
        self.execution.log(f"{describe_entry(entry)}: {FAILED}{why}", "warning")
        if len(entry) == 1:
            self.rows[entry[0]] = replace(self.rows[entry[0]], reason=f"{FAILED}{why}")

    def _result(
        self, today: Today, first: Trial, at_workers: RaceVerdict | None, at_rest: RaceVerdict | None
    ) -> OwnRaceResult:
        verdict, entry = answer_of(at_workers, at_rest)
        memory_bytes, numbers = self._together(first, entry)
        chosen, why_dropped = together(entry, numbers, self.facts, self.noise)
        if why_dropped is not None:
            self.remarks.append(why_dropped)
        gain, rows = verdict.gain if chosen else None, tuple(self.rows.values())
        return OwnRaceResult(
            spec=self.spec,
            device=self.starts.device,
            environment=self.starts.environment,
            today=today,
            facts=self.facts.noted,
            rows=rows,
            at_workers=at_workers,
            base=self.base,
            at_rest=at_rest,
            verdict=verdict,
            chosen=chosen,
            chosen_memory_bytes=memory_bytes,
            chosen_numbers=numbers,
            savings=savings(self.spec, gain, is_bound=verdict.claim is SpeedClaim.AT_LEAST),
            lines=tuple(lines_to_paste(chosen, rows)),
            rounds_of_workers=tuple(self.rounds_of_workers),
            rounds=tuple(self.rounds),
            others_cores=mean_others_cores([*self.rounds_of_workers, *self.rounds]),
            remarks=tuple(self.remarks),
            total_seconds=self.execution.seconds,
            starts=len(self.starts.seconds),
        )

    def _together(self, first: Trial, chosen: Entry) -> tuple[int | None, Numbers | None]:
        if len(chosen) < 2:
            row = self.rows[chosen[0]] if chosen else None
            return (row.memory_bytes, row.numbers) if row else (None, None)
        try:
            trial = self.starts.trial(chosen)
        except (StartFailed, TimeIsUp) as error:
            self.execution.log(f"{describe_entry(chosen)}: its memory was not measured: {error}", "warning")
            return None, None
        beside = self.trials.get((WORKERS,), first) if WORKERS in chosen else first
        return trial.memory_bytes, numbers_of(trial, beside, self.noise, coarsest(chosen))
