"""Runs a race of a catalogue model's settings: today's training against each change, in turns. Loads no torch.

Every block of steps runs in a process of its own, forked from one that has imported everything. Before an entry races
it is admitted: one block shows whether it runs, and how long compiling takes; five steps give the losses that are
compared with today's; three steps its memory. An entry that fails, or whose losses differ by more than its precision
explains, is a row with its reason.

The settings race at today's batch size. Then today's settings, the leader, and the leader with checkpointing each get
the batch size of their own, the largest that keeps the reserve of the memory, which is searched exactly; those race
against today's training in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Protocol

from ..errors import EngineError, TimeIsUp, WorkloadFailed
from ..estimate.guide import EstimateGuide
from ..execution import Emit, Execution
from ..machine.scratch import scratch_folder
from ..machine.watch import MachineWatch, tree_seconds, usable_cores
from ..provenance.read import run_facts
from ..race.field import TODAY, Entry, RaceVerdict
from ..race.numbers import STEPS, UNKNOWN, Numbers, compare_numbers, is_hidden, largest_difference
from ..race.rule import does_load_stay
from ..race.variants import (
    Change,
    NotTried,
    changes_to_try,
    field_of,
    label_of_entry,
    settings_of_entry,
)
from ..results.losses import Losses
from ..results.result import DeviceFacts, Outcome, Reason
from ..runner import Hold, WorkerSweep, own_worker
from ..spec import MEMORY_STEPS, SCHEMA, RunSpec
from ..speed.comparison import TimedBlock
from ..speed.rounds import describe_load
from ..text.units import format_duration
from ..worker.prober import Prober
from .answer import (
    BLOCK_SECONDS,
    concluded,
    field_of_sizes,
    not_reached,
    options_of,
    tolerance_of,
    with_figures,
    with_speed,
)
from .course import Course
from .result import AtSize, FasterResult, Row
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
NOT_REPEATABLE = "whether it trains the same cannot be told: today's training, repeated, gives other losses"


class Racer(Prober, Protocol):
    """A worker that takes other settings, and trains for their losses."""

    def turn_to(self, spec: RunSpec) -> None: ...
    def losses(self, batch_size: int, *, steps: int, seconds: float) -> Losses: ...


@dataclass(frozen=True, slots=True)
class Admitted:
    """What is known of an entry before it races. `reason` is why it does not."""

    numbers: Numbers = UNKNOWN
    memory_bytes: int | None = None
    compile_seconds: float | None = None
    reason: str | None = None


def race(
    spec: FasterSpec,
    emit: Emit = lambda _: None,
    *,
    worker: Racer | None = None,
    keep: Callable[[FasterResult], None] = lambda _: None,
    hold: Hold | None = None,
    started_as: Mapping[str, Any] | None = None,
) -> FasterResult:
    """Run one race. Raises EngineError where today's training does not run.

    `keep` stores the result before its event is emitted. `hold` holds the device during the race.
    """
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
    """A run in progress."""

    def __init__(self, spec: FasterSpec, execution: Execution, worker: Racer, started_as: Mapping[str, Any]) -> None:
        self.spec, self.execution, self.worker, self.started_as = spec, execution, worker, started_as
        self.base = spec.run_spec()
        self.size = spec.current_batch_size
        self.block_seconds = BLOCK_SECONDS
        self.admitted: dict[Entry, Admitted] = {}
        self.today_losses: tuple[float, ...] = ()
        self.own_difference: float | None = None
        self.largest: dict[Entry, int | None] = {}
        self.watch = MachineWatch(own_seconds=tree_seconds)

    @property
    def device(self) -> DeviceFacts:
        assert self.worker.device is not None
        return self.worker.device

    def run(self) -> FasterResult:
        self.execution.emit_event("started", schema=SCHEMA, spec=self.spec.to_dict())
        self.execution.timed("preparing", self._open)
        load = describe_load(self.watch.others_so_far(), len(usable_cores()))
        if load is not None and self.device.kind == "cpu":
            self.execution.log(load, "warning")
        changes, not_tried = changes_to_try(self.base, self.spec.wanted)
        for each in not_tried:
            self.execution.log(f"not tried: {each.label}: {each.reason}")
        self.execution.timed("numbers", self._repeat_today)
        course = self._at_today(changes)
        at_today = self.execution.timed("racing", course.raced)
        if at_today.ended_early:  # without an answer at today's size, other sizes are worth no time
            course.until_seconds = self.spec.time_budget_seconds
            at_today = self.execution.timed("racing", course.raced)
        sizes, course_of_sizes = list[AtSize](), None
        if not at_today.ended_early and not does_load_stay(course.racing, course.rounds):
            sizes, course_of_sizes = self.execution.timed("sizing", lambda: self._sizes(at_today, changes))
        at_own = None
        if course_of_sizes is not None:
            at_own = self.execution.timed("racing_sizes", course_of_sizes.raced)
        return self._result(course, at_today, sizes, course_of_sizes, at_own, not_tried)

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

    def _at_today(self, changes: tuple[Change, ...]) -> Course:
        is_cpu = self.device.kind == "cpu"
        return Course(
            field_of(self.base, changes, cores=len(usable_cores()), shares_cores=is_cpu),
            self.execution,
            label_of_entry,
            lambda entry: self._block(entry, self.size),
            self._why_not_admitted,
            SHARE_AT_TODAY * self.spec.time_budget_seconds,
        )

    def _block(self, entry: Entry, batch_size: int, seconds: float | None = None) -> TimedBlock:
        self.worker.turn_to(self._spec_of(entry))
        left = self.execution.seconds_left if seconds is None else seconds
        return self.worker.time(batch_size, block_seconds=self.block_seconds, seconds=left, progress=self._say_step)

    def _say_step(self, stage: str, step: int) -> None:
        self.execution.emit_event("progress", batch_size=self.size, purpose="timing", stage=stage, step=step)

    def _why_not_admitted(self, entry: Entry) -> str | None:
        if entry not in self.admitted:
            self.admitted[entry] = self._admit(entry)
        return self.admitted[entry].reason

    def _admit(self, entry: Entry) -> Admitted:
        self.execution.check_deadline()
        self.execution.stage(f"admitting {label_of_entry(entry)}")
        most_seconds, left = SHARE_OF_ADMISSION * self.spec.time_budget_seconds, self.execution.seconds_left
        try:
            return self._trained(entry, left if entry == TODAY else min(most_seconds, left))
        except TimeIsUp:
            if self.execution.seconds_left <= 0:
                raise
            took = format_duration(most_seconds)
            return Admitted(reason=f"it took more than {took} before it could race: give more time, or try it alone")

    def _trained(self, entry: Entry, seconds: float) -> Admitted:
        """Train an entry for its losses and its memory. Raises TimeIsUp where that takes longer."""
        until = self.execution.seconds + seconds
        try:
            tried = self._block(entry, self.size, seconds)
            if tried.outcome is not Outcome.FITS:
                return Admitted(reason=f"{tried.error_type}: {tried.error_message}")
            if entry == TODAY:
                self.block_seconds = max(BLOCK_SECONDS, LEAST_STEPS * median(tried.step_seconds))
            compiling = tried.conditions.get("compile_seconds")
            found = self.worker.losses(self.size, steps=STEPS, seconds=until - self.execution.seconds)
            spec = self._spec_of(entry)
            tolerance = tolerance_of(spec, self.base)
            numbers = compare_numbers(found.losses, self.today_losses, self.own_difference, tolerance)
            probe = self.worker.probe(
                self.size,
                steps=MEMORY_STEPS,
                with_kinds=False,
                seconds=until - self.execution.seconds,
                progress=self._say_step,
            )
        except EngineError as error:
            return Admitted(reason=str(error))
        reason = None
        if not probe.fits:
            reason = f"{probe.error_type}: {probe.error_message}"
        elif entry != TODAY and is_hidden(self.own_difference):
            reason = NOT_REPEATABLE
        elif entry != TODAY and not numbers.is_offered:
            by = "" if numbers.largest_difference is None else f" by up to {numbers.largest_difference:.2g} of it"
            reason = f"its losses differ from today's{by}, more than its precision explains"
        return Admitted(numbers, probe.memory_bytes, compiling, reason)

    def _sizes(self, verdict: RaceVerdict, changes: tuple[Change, ...]) -> tuple[list[AtSize], Course | None]:
        names = {change.name for change in changes}
        leader = verdict.leader
        wanted: list[Entry] = [TODAY, leader]
        if CHECKPOINTING in names and (more := self._with_checkpointing(leader, changes)) is not None:
            wanted.append(more)
        found: list[AtSize] = []
        for entry in dict.fromkeys(wanted):
            try:
                if self._why_not_admitted(entry) is None:
                    found.append(self._searched(entry, SHARE_OF_SEARCHES * self.execution.seconds_left))
            except TimeIsUp:
                break
        options = options_of(found, self.size)
        if not options:
            return found, None
        course = Course(
            field_of_sizes(options, cores=len(usable_cores()), shares_cores=self.device.kind == "cpu"),
            self.execution,
            lambda entry: entry[0] if entry else f"today at {self.size}",
            lambda entry: self._block(*self._option(options, entry)),
            lambda _: None,
            self.spec.time_budget_seconds,
        )
        return found, course

    def _option(self, options: Mapping[str, AtSize], entry: Entry) -> tuple[Entry, int]:
        return (options[entry[0]].entry, options[entry[0]].batch_size) if entry else (TODAY, self.size)

    def _with_checkpointing(self, leader: Entry, changes: tuple[Change, ...]) -> Entry | None:
        field_ = field_of(self.base, changes)
        return None if CHECKPOINTING in leader else field_.entry([*leader, CHECKPOINTING])

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
            return AtSize(entry, label, 0, None, reason=str(error))
        largest = None if boundary.reason is Reason.TIME_BUDGET else boundary.largest_batch_size
        self.largest[entry] = largest
        reason = None if with_reserve else "no size that keeps the reserve was found in time"
        self.execution.log(f"{label}: largest {largest or 'not found in time'}, with the reserve {with_reserve or '-'}")
        return AtSize(entry, label, with_reserve or 0, largest, reason=reason)

    def _only_stages(self, event: dict[str, Any]) -> None:
        """Pass on what a search is doing; its probes are of other settings than the run's."""
        if event["event"] in ("stage", "progress"):
            self.execution.emit({**event, "seconds": round(self.execution.seconds, 3)})

    def _result(
        self,
        course: Course,
        at_today: RaceVerdict,
        sizes: list[AtSize],
        of_sizes: Course | None,
        at_own: RaceVerdict | None,
        not_tried: tuple[NotTried, ...],
    ) -> FasterResult:
        rounds, rounds_of_sizes = tuple(course.rounds), tuple(of_sizes.rounds) if of_sizes else ()
        if of_sizes is not None:
            sizes = [self._at_size(each, of_sizes) for each in sizes]
        return FasterResult(
            spec=self.spec,
            device=self.device,
            rows=tuple(self._rows(course, sizes)),
            not_tried=(*not_tried, *not_reached(course.racing, self.admitted)),
            own_difference=self.own_difference,
            rounds=rounds,
            rounds_of_sizes=rounds_of_sizes,
            cores=course.racing.cores,
            environment=self.environment,
            total_seconds=self.execution.seconds,
            **concluded(self.base, self.device.kind, at_today, at_own, sizes, [*rounds, *rounds_of_sizes]),
        )

    def _rows(self, course: Course, sizes: list[AtSize]) -> Iterator[Row]:
        for entry, known in self.admitted.items():
            row = Row(
                entry=entry,
                memory_bytes=known.memory_bytes,
                numbers=known.numbers,
                largest_batch_size=self.largest.get(entry),
                compile_seconds=known.compile_seconds,
                reason=known.reason or course.reasons.get(entry),
            )
            yield with_figures(row, self.base, course.rounds, course.racing, sizes)

    def _at_size(self, at: AtSize, course: Course) -> AtSize:
        raced = with_speed(at, course.rounds, course.racing)
        return replace(raced, reason=at.reason or course.reasons.get((at.option,)))
