"""Tries each variant by a start beside today's, races those that train the same, and says what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...errors import TimeIsUp, WorkloadFailed
from ...execution import Emit, Execution
from ...machine.scratch import scratch_folder
from ...provenance.read import run_facts
from ...race.field import TODAY, Entry, Field, NextRound, RacedRound, RaceVerdict, Timed
from ...race.numbers import Numbers, Sameness, largest_difference
from ...race.row import Row
from ...race.rule import decide, known_ratio
from ...race.text import pays_after
from ...results.intervals import ENOUGH_ROUNDS
from ...results.savings import savings
from ...results.speed_rounds import SpeedClaim, Stage
from ...spec import SCHEMA
from ...text.units import format_bytes
from ..start.command import begin_command
from ..start.launch import Begin
from .result import FasterResult, Today
from .spec import FasterSpec
from .starts import StartFailed, Starts, describe_entry
from .trial import Trial, numbers_of
from .variants import CONFLICTS, VARIANTS, Variant

MOST_SECONDS = 1_800.0
"""A race ends after these seconds, or with the time budget."""
NOTHING_TIMED = RaceVerdict(
    chosen=TODAY, leader=TODAY, claim=SpeedClaim.NOTHING, gain=None, rounds=0, quiet_rounds=0, ended_early=True
)
WORKERS = "workers"
GIVE_UP_ROUNDS = 2 * ENOUGH_ROUNDS
"""A CPU whose first rounds were all disturbed by other work will show no more: nothing is claimed from such rounds."""


def make_faster(
    spec: FasterSpec,
    emit: Emit = lambda _: None,
    *,
    keep: Callable[[FasterResult], None] = lambda _: None,
    begin: Begin | None = None,
    started_as: Mapping[str, Any] | None = None,
) -> FasterResult:
    """Find what makes a training faster. Raises CommandUntunable and WorkloadFailed where today's does not train."""
    execution = Execution(emit, spec.time_budget_seconds)
    with scratch_folder() as cache_folder:
        starts = Starts(
            spec=spec,
            execution=execution,
            begin=begin or partial(begin_command, spec),
            started_as=started_as or run_facts(),
            cache_folder=cache_folder,
        )
        return execution.finish(_Faster(spec, execution, starts).run(), keep)


@dataclass
class _Faster:
    """A run in progress. `base` are the variants that the others are tried on top of."""

    spec: FasterSpec
    execution: Execution
    starts: Starts
    base: Entry = TODAY
    rows: dict[str, Row] = field(default_factory=dict)
    rounds: list[RacedRound] = field(default_factory=list)
    noise: float | None = None
    remarks: list[str] = field(default_factory=list)
    trials: dict[Entry, Trial] = field(default_factory=dict)
    is_given_up: bool = False

    def run(self) -> FasterResult:
        self.execution.emit_event("started", schema=SCHEMA, spec=self.spec.to_dict())
        self.execution.phase("memory")
        first = self.starts.first()
        self.starts.step_seconds = first.step_seconds
        today = self._today(first)
        applying = [each for each in VARIANTS if self._applies(each, today)]
        verdict, chosen = NOTHING_TIMED, TODAY
        try:
            if today.is_limited_by_loader and any(each.name == WORKERS for each in applying):
                verdict = self._loader_first([each for each in applying if each.name == WORKERS], first)
                applying = [each for each in applying if each.name != WORKERS]
                chosen = self.base
            if self.is_given_up:
                self.remarks.append("other work disturbed every round, so the other variants were not tried")
                return self._result(today, first, verdict, TODAY)
            found = self._race(self._tried(applying, self.trials.get(self.base, first)))
            if found.chosen != TODAY or not self.base:
                verdict, chosen = found, (*self.base, *found.chosen)
        except TimeIsUp:
            self.remarks.append("the time budget ended before all was tried")
        return self._result(today, first, verdict, chosen if verdict.is_found else TODAY)

    def _today(self, first: Trial) -> Today:
        """Start today's training once more: by how much its own losses differ from start to start."""
        try:
            again = self.starts.trial(TODAY)
        except StartFailed as error:
            raise WorkloadFailed(f"the training as it is failed in its second start: {error}") from error
        self.noise = largest_difference(again.compared_losses, first.compared_losses)
        evidence = first.evidence
        return Today(
            batch_size=self.starts.batch_size,
            samples_per_step=self.starts.batch_size * evidence.micro_batches * max(len(evidence.ranks), 1),
            memory_bytes=first.memory_bytes,
            step_seconds=first.step_seconds,
            waiting_fraction=evidence.waiting_fraction,
            loss_noise=self.noise,
            cores=self.starts.cores,
        )

    def _applies(self, variant: Variant, today: Today) -> bool:
        """Whether a variant is tried. One that is not has a row that says why."""
        if self.spec.tried and variant.name not in self.spec.tried:
            return False
        row = Row(name=variant.name, label=variant.label, lines=variant.lines_for(self.starts.known_facts))
        self.rows[variant.name] = replace(row, reason=variant.why_not(self.starts.known_facts))
        return self.rows[variant.name].reason is None

    def _loader_first(self, workers: Sequence[Variant], first: Trial) -> RaceVerdict:
        """Race the workers alone: where data is waited for, nothing else can show what it gains."""
        fraction = first.evidence.waiting_fraction or 0.0
        self.execution.log(
            f"waiting for data is the limit ({fraction * 100:.0f} % of a step): more loader workers first"
        )
        verdict = self._race(self._tried(workers, first))
        if verdict.is_found:
            self.base = verdict.chosen
        return verdict

    def _tried(self, variants: Sequence[Variant], beside: Trial) -> list[str]:
        """Start each variant once. Those that train the same, and may be faster, are raced."""
        racing = []
        for variant in variants:
            row, name = self.rows[variant.name], variant.name
            try:
                trial = self.starts.trial((*self.base, name))
            except StartFailed as error:
                self.rows[name] = replace(row, reason=f"it failed: {error}")
                self.execution.log(f"{name}: {self.rows[name].reason}", "warning")
                continue
            self.trials[(*self.base, name)] = trial
            self.rows[name] = row = self._shown(row, variant, trial, beside)
            trained = row.numbers.sameness.label if row.numbers else "not compared"
            self.execution.log(f"{name}: {trained}, {format_bytes(trial.memory_bytes)}")
            if row.reason is None and not variant.saves_memory_only:
                racing.append(name)
        return racing

    def _shown(self, row: Row, variant: Variant, trial: Trial, beside: Trial) -> Row:
        """Return the row with what its first start showed."""
        numbers, draws_elsewhere = (
            numbers_of(trial, beside, self.noise, variant.rounds_as),
            self._draws_elsewhere([variant.name]),
        )
        compile_seconds = None
        if variant.name == "compile":
            compile_seconds = max(trial.warm_up_seconds - beside.warm_up_seconds, 0.0)
        reason = None if numbers.is_offered or draws_elsewhere else _why_not_offered(numbers)
        return replace(
            row,
            reason=reason,
            beside=self.base,
            memory_bytes=trial.memory_bytes,
            numbers=numbers,
            draws_elsewhere=draws_elsewhere,
            compile_seconds=compile_seconds,
        )

    def _race(self, names: Sequence[str]) -> RaceVerdict:
        """Race these variants on top of the base. In the evaluation they are compared with today's own training."""
        self.execution.phase("timing")
        if not names:
            return replace(NOTHING_TIMED, claim=SpeedClaim.NO_GAIN, ended_early=False)
        left = min(MOST_SECONDS, self.execution.seconds_left)
        is_cpu, cores = self.starts.device.kind == "cpu", self.starts.cores
        racing = Field(tuple(names), CONFLICTS, most_seconds=left, cores=cores, shares_cores=is_cpu)
        rounds: list[RacedRound] = []
        while isinstance(step := decide(racing, rounds), NextRound):
            self.execution.emit_event("timing", stage=step.stage, round=len(self.rounds) + 1, batch_sizes=[])
            rounds.append(self._round(step, is_reversed=len(rounds) % 2 == 1))
            self.rounds.append(rounds[-1])
            if is_cpu and len(rounds) >= GIVE_UP_ROUNDS and all(each.disturbed(cores) for each in rounds):
                self.is_given_up = True
                step = replace(NOTHING_TIMED, rounds=len(rounds), ended_early=False)
                break
        # with a base, the evaluation's rounds have another TODAY
        alike = [r for r in rounds if not self.base or r.stage is Stage.SELECTION]
        for name in names:
            speed, rough_speed = known_ratio((name,), alike, racing)
            row = replace(self.rows[name], speed=speed, rough_speed=rough_speed)
            steps = pays_after(row.compile_seconds, speed, self.starts.step_seconds)
            self.rows[name] = replace(row, pays_after_steps=steps)
        return step

    def _round(self, step: NextRound, *, is_reversed: bool) -> RacedRound:
        """Start each entry once, in the reverse order of the round before: a slow drift meets all alike."""
        timed, began, failed = [], time.monotonic(), None
        workers = max(self.starts.known_facts.workers_to_try, self.starts.known_facts.workers)
        for entry in reversed(step.entries) if is_reversed else step.entries:
            is_today = step.stage is Stage.EVALUATION and entry == TODAY
            try:
                speed, others = self.starts.speed(() if is_today else (*self.base, *entry), workers)
            except StartFailed as error:
                if entry == TODAY:
                    raise WorkloadFailed(f"the training as it is failed in a later start: {error}") from error
                self._fail(entry, str(error))
                failed = entry
                break
            timed.append(Timed(entry, speed, others))
        shown = ", ".join(f"{describe_entry(each.entry)} {each.samples_per_second:.1f}" for each in timed)
        self.execution.log(f"round {len(self.rounds) + 1}: {shown} samples/s")
        return RacedRound(step.stage, step.generation, tuple(timed), time.monotonic() - began, failed)

    def _fail(self, entry: Entry, why: str) -> None:
        self.execution.log(f"{describe_entry(entry)}: it failed: {why}", "warning")
        if len(entry) == 1:
            self.rows[entry[0]] = replace(self.rows[entry[0]], reason=f"it failed: {why}")

    def _result(self, today: Today, first: Trial, verdict: RaceVerdict, chosen: Entry) -> FasterResult:
        memory_bytes, numbers = self._together(first, chosen)
        if numbers is not None and not numbers.is_offered and not self._draws_elsewhere(chosen):
            self.remarks.append(f"{describe_entry(chosen)} together: {_why_not_offered(numbers)}")
            chosen = TODAY
        gain = verdict.gain if chosen else None
        return FasterResult(
            spec=self.spec,
            device=self.starts.device,
            environment=self.starts.environment,
            today=today,
            rows=tuple(self.rows.values()),
            verdict=verdict,
            chosen=chosen,
            savings=savings(self.spec, gain, is_bound=verdict.claim is SpeedClaim.AT_LEAST),
            rounds=tuple(self.rounds),
            others_cores=self.starts.mean_others_cores,
            remarks=tuple(self.remarks),
            seconds=self.execution.seconds,
            starts=len(self.starts.seconds),
            chosen_memory_bytes=memory_bytes,
            chosen_numbers=numbers,
        )

    def _together(self, first: Trial, chosen: Entry) -> tuple[int | None, Numbers | None]:
        """Return the memory and the numbers of all that was chosen; of several they are measured by one more start."""
        if len(chosen) < 2:
            row = self.rows[chosen[0]] if chosen else None
            return (row.memory_bytes, row.numbers) if row else (None, None)
        try:
            trial = self.starts.trial(chosen)
        except (StartFailed, TimeIsUp) as error:
            self.execution.log(f"{describe_entry(chosen)}: its memory was not measured: {error}", "warning")
            return None, None
        return trial.memory_bytes, numbers_of(trial, first, self.noise, _coarsest(chosen))

    def _draws_elsewhere(self, names: Iterable[str]) -> bool:
        """Whether the rows of the data draw random numbers, and do so in workers then, from another generator."""
        return WORKERS in names and bool(self.starts.known_facts.noted["draws_random"])


def _coarsest(names: Iterable[str]) -> str:
    order = ("fp32", "tf32", "bf16")
    return max((each.rounds_as for each in VARIANTS if each.name in set(names)), key=order.index, default=order[0])


def _why_not_offered(numbers: Numbers) -> str:
    if numbers.sameness is Sameness.UNKNOWN:
        return "two starts of today's training differ too much to tell whether it trains the same"
    return "its losses differ by more than its precision explains"
