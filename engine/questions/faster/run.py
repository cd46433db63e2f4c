"""Runs a race of a catalogue model's settings: today's training against each change, in turns. Loads no torch.

Every block of steps runs in a process of its own, forked from one that has imported everything. Before an entry races
it is admitted, by one block, five steps for its losses and three for its memory. An entry that fails, or whose losses
differ by more than its precision explains, is a row with its reason.

Then today's settings, the leader, and the leader with checkpointing race in the same way at the batch size of their
own, the largest that keeps the reserve of the memory, which is searched exactly.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from ...errors import EngineError, TimeIsUp, WorkloadFailed
from ...estimate.guide import EstimateGuide
from ...facts.provenance.read import run_facts
from ...facts.result import DeviceFacts, Outcome, Reason
from ...machine.execution import Emit, Execution
from ...machine.scratch import scratch_folder
from ...machine.watch import MachineWatch, tree_seconds, usable_cores
from ...race.course import Course
from ...race.field import TODAY, Entry, Field, Timed
from ...race.numbers import STEPS, compare_numbers, largest_difference
from ...race.row import Row
from ...race.rule import does_load_stay
from ...race.speed.comparison import TimedBlock
from ...race.speed.rounds import NextRound, describe_load
from ...race.variants import label_of_entry, settings_of_entry
from ...settings.spec import MEMORY_STEPS, RunSpec
from ...text.units import format_duration
from ...trainings.catalogue.handle import WorkerHandle
from ..size import Hold, WorkerSweep, own_worker
from .answer import BLOCK_SECONDS, RaceOfSettings, tolerance_of, why_not_raced
from .result import AtSize, FasterResult
from .spec import FasterSpec

LEAST_STEPS = 2.5
"""A block lasts `BLOCK_SECONDS`, or these steps of today's training where they are longer: a median needs three."""
SHARE_AT_TODAY = 0.6
"""Share of the time budget by which the race at today's batch size ends; the rest is for sizes of their own."""
SHARE_OF_ADMISSION = 0.15
"""Share of the time budget that one change may take before it races: torch.compile may take more than all races."""
SHARE_OF_SEARCHES = 0.5
"""Share of the time left then that the searches may take."""
CHECKPOINTING = "checkpointing"


def race(
    spec: FasterSpec,
    emit: Emit = lambda _: None,
    *,
    worker: WorkerHandle | None = None,
    keep: Callable[[FasterResult], None] = lambda _: None,
    hold: Hold | None = None,
    started_as: Mapping[str, Any] | None = None,
) -> FasterResult:
    """Run one race, with `keep` and `hold` as for `runner.measure`. Raises EngineError where today's does not run."""
    execution = Execution(emit, spec.time_budget_seconds)
    started_as = started_as or run_facts()
    if worker is not None:
        return execution.finish(_Running(spec, execution, worker, started_as).run(), keep)
    with (
        scratch_folder() as empty_cache,  # a used one would hide the seconds of compiling
        own_worker(spec.run_spec(), execution, hold, {"TORCHINDUCTOR_CACHE_DIR": empty_cache}) as own,
    ):
        return execution.finish(_Running(spec, execution, own, started_as).run(), keep)


class _Running:
    def __init__(
        self, spec: FasterSpec, execution: Execution, worker: WorkerHandle, started_as: Mapping[str, Any]
    ) -> None:
        self.spec, self.execution, self.worker, self.started_as = spec, execution, worker, started_as
        self.base = spec.run_spec()
        self.size = spec.current_batch_size
        self.block_seconds = BLOCK_SECONDS
        self.admitted: dict[Entry, Row] = {}
        self.today_losses: tuple[float, ...] = ()
        self.own_difference: float | None = None
        self.watch = MachineWatch(own_seconds=tree_seconds)

    @property
    def device(self) -> DeviceFacts:
        assert self.worker.device is not None
        return self.worker.device

    def run(self) -> FasterResult:
        self.execution.begin(self.spec)
        self.execution.timed("preparing", self._open)
        load = describe_load(self.watch.others_so_far(), len(usable_cores()))
        if load is not None and self.device.kind == "cpu":
            self.execution.log(load, "warning")
        kind, cores = self.device.kind, len(usable_cores())
        race = RaceOfSettings(today=self.base, wanted=self.spec.wanted, device_kind=kind, cores=cores)
        for each in race.changes[1]:
            self.execution.log(f"not tried: {each.label}: {each.reason}")
        self.execution.timed("numbers", self._repeat_today)
        race = self._with_sizes(self._at_today(replace(race, own_difference=self.own_difference)))
        return FasterResult(
            spec=self.spec,
            device=self.device,
            own_difference=race.own_difference,
            rounds=tuple(race.rounds),
            rounds_of_sizes=tuple(race.rounds_of_sizes),
            cores=cores,
            environment=self.environment,
            total_seconds=self.execution.seconds,
            **race.members(),
        )

    def _open(self) -> None:
        self.worker.open()
        self.environment = {**self.worker.environment, **self.started_as}
        self.execution.emit_event("device", device=self.device.to_dict(), environment=self.environment)
        self.base = replace(self.base, device=self.device.device)  # what the device does not have is refused now

    def _spec_of(self, entry: Entry) -> RunSpec:
        return replace(self.base, **settings_of_entry(entry))

    def _repeat_today(self) -> None:
        """Take the losses of today's training twice: what they differ by is its own non-determinism."""
        self.worker.turn_to(self.base)
        try:
            first, again = (
                self.worker.losses(self.size, steps=STEPS, seconds=self.execution.seconds_left) for _ in range(2)
            )
        except TimeIsUp as exc:
            raise WorkloadFailed("the time budget ended before today's training had run; give more of it") from exc
        if first.outcome is not Outcome.FITS:
            why = f"{first.error_type}: {first.error_message}"
            raise WorkloadFailed(f"batch {self.size}, today's, does not train here ({why}); give --current-batch-size")
        self.today_losses = first.losses
        self.own_difference = largest_difference(again.losses, first.losses)
        said = "to the bit" if self.own_difference == 0 else f"within {self.own_difference or 0:.1e}"
        self.execution.log(f"today's training repeats its losses {said}")

    def _course(
        self,
        racing: Field,
        until_seconds: float,
        label: Callable[[Entry], str],
        trained: Callable[[Entry], tuple[Entry, int]],
    ) -> Course:
        """Return a race of blocks of steps in random order. `trained` is what an entry changes, and its batch size."""
        rng = random.Random(0)  # noqa: S311 - the order of blocks

        def time(_: NextRound[Entry], entry: Entry) -> Timed:
            block = self._block(*trained(entry))
            if block.outcome is not Outcome.FITS:
                raise WorkloadFailed(f"{block.error_type}: {block.error_message}")
            others, computing = block.conditions.get("others_cores"), block.computing_fraction
            return Timed(entry, block.samples_per_second, others, computing_fraction=computing)

        def say(step: NextRound[Entry], _: Sequence[Timed]) -> str:
            return f"round {len(course.rounds) + 1}, {step.stage}: {', '.join(map(label, step.entries))}"

        course = Course(
            racing=racing,
            execution=self.execution,
            until_seconds=until_seconds,
            label=label,
            begin=lambda step: rng.sample(step.entries, len(step.entries)),
            time=time,
            say=say,
        )
        return course

    def _at_today(self, race: RaceOfSettings) -> RaceOfSettings:
        """Race at today's batch size, and search the sizes of what led."""
        until_seconds = SHARE_AT_TODAY * self.spec.time_budget_seconds
        course = self._course(race.racing, until_seconds, label_of_entry, lambda entry: (entry, self.size))
        course.admit = self._why_not_admitted
        verdict, sizes = self.execution.timed("racing", course.raced), list[AtSize]()
        if verdict.ended_early:  # without an answer at today's size, other sizes are worth no time
            course.until_seconds = self.spec.time_budget_seconds
            verdict = self.execution.timed("racing", course.raced)
        if not verdict.ended_early and not does_load_stay(course.racing, course.rounds):
            sizes = self.execution.timed("sizing", lambda: self._sizes(verdict.leader, race.racing))
        raced = {entry for entry in course.reasons if self._why_not_admitted(entry) is None}
        rows = [
            replace(row, failure=course.reasons[entry]) if entry in raced else row
            for entry, row in self.admitted.items()
        ]
        return replace(race, rows=rows, rounds=course.rounds, sizes=sizes)

    def _with_sizes(self, race: RaceOfSettings) -> RaceOfSettings:
        """Race what has a larger batch size of its own against today's training."""

        def trained(entry: Entry) -> tuple[Entry, int]:
            option = race.options[entry[0]] if entry else None
            return (TODAY, self.size) if option is None else (option.entry, option.batch_size)

        def label(entry: Entry) -> str:
            return entry[0] if entry else f"today at {self.size}"

        if not race.options:
            return race
        course = self._course(race.racing_sizes, self.spec.time_budget_seconds, label, trained)
        self.execution.timed("racing_sizes", course.raced)
        failed = course.reasons
        sizes = [replace(each, failure=each.failure or failed.get((each.option,))) for each in race.sizes]
        return replace(race, sizes=sizes, rounds_of_sizes=course.rounds)

    def _block(self, entry: Entry, batch_size: int, seconds: float | None = None) -> TimedBlock:
        self.worker.turn_to(self._spec_of(entry))
        left = self.execution.seconds_left if seconds is None else seconds
        return self.worker.time(batch_size, block_seconds=self.block_seconds, seconds=left, progress=self._say_step)

    def _say_step(self, stage: str, step: int) -> None:
        self.execution.emit_event("progress", batch_size=self.size, purpose="timing", stage=stage, step=step)

    def _why_not_admitted(self, entry: Entry) -> str | None:
        if entry not in self.admitted:
            self.admitted[entry] = self._admit(entry)
        return why_not_raced(self.admitted[entry], self.own_difference)

    def _admit(self, entry: Entry) -> Row:
        self.execution.check_deadline()
        self.execution.stage(f"admitting {label_of_entry(entry)}")
        most_seconds, left = SHARE_OF_ADMISSION * self.spec.time_budget_seconds, self.execution.seconds_left
        row = Row(entry=entry, label=label_of_entry(entry))
        try:
            return self._trained(row, left if entry == TODAY else min(most_seconds, left))
        except TimeIsUp:
            if self.execution.seconds_left <= 0:
                raise
            took = format_duration(most_seconds)
            return replace(
                row, failure=f"it took more than {took} before it could race: give more time, or try it alone"
            )
        except EngineError as error:
            return replace(row, failure=str(error))

    def _trained(self, row: Row, seconds: float) -> Row:
        """Train an entry for its losses and its memory. Raises TimeIsUp where that takes longer, and EngineError."""
        entry, until = row.entry, self.execution.seconds + seconds
        tried = self._block(entry, self.size, seconds)
        if tried.outcome is not Outcome.FITS:
            return replace(row, failure=f"{tried.error_type}: {tried.error_message}")
        if entry == TODAY:
            self.block_seconds = max(BLOCK_SECONDS, LEAST_STEPS * median(tried.step_seconds))
        compiling = tried.conditions.get("compile_seconds")
        found = self.worker.losses(self.size, steps=STEPS, seconds=until - self.execution.seconds)
        tolerance = tolerance_of(self._spec_of(entry), self.base)
        numbers = compare_numbers(found.losses, self.today_losses, self.own_difference, tolerance)
        left = until - self.execution.seconds
        probe = self.worker.probe(
            self.size, steps=MEMORY_STEPS, with_kinds=False, seconds=left, progress=self._say_step
        )
        failure = None if probe.fits else f"{probe.error_type}: {probe.error_message}"
        return replace(
            row, numbers=numbers, memory_bytes=probe.memory_bytes, compile_seconds=compiling, failure=failure
        )

    def _sizes(self, leader: Entry, racing: Field) -> list[AtSize]:
        more = racing.entry([*leader, CHECKPOINTING])  # equals the leader where checkpointing is not raced
        found: list[AtSize] = []
        for entry in dict.fromkeys(each for each in (TODAY, leader, more) if each is not None):
            try:
                if self._why_not_admitted(entry) is None:
                    found.append(self._searched(entry, SHARE_OF_SEARCHES * self.execution.seconds_left))
            except TimeIsUp:
                break
        return found

    def _searched(self, entry: Entry, seconds: float) -> AtSize:
        label = label_of_entry(entry)
        self.execution.stage(f"searching the largest batch size of {label}")
        spec = replace(self._spec_of(entry), time_budget_seconds=max(seconds, 1.0))
        self.worker.turn_to(spec)
        execution = Execution(self._only_stages, seconds)
        guide = EstimateGuide(spec, None, execution.log)
        sweep = WorkerSweep(
            spec=spec, execution=execution, started_as=self.started_as, worker=self.worker, guide=guide,
            earlier=None, estimates=not spec.torch_compile, explains=False,
        )  # fmt: skip
        try:
            boundary, with_reserve = sweep.search_alone()
        except EngineError as error:
            return AtSize(entry, label, 0, None, failure=str(error))
        largest = None if boundary.reason is Reason.TIME_BUDGET else boundary.largest_batch_size
        self.execution.log(f"{label}: largest {largest or 'not found in time'}, with the reserve {with_reserve or '-'}")
        return AtSize(entry, label, with_reserve or 0, largest)

    def _only_stages(self, event: dict[str, Any]) -> None:
        """Pass on what a search is doing; its probes are of other settings than the run's."""
        if event["event"] in ("stage", "progress"):
            self.execution.emit({**event, "seconds": round(self.execution.seconds, 3)})
