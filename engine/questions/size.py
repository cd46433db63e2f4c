"""Measures a model: search, soak, curve, comparison of speeds, answer, each told by events. Loads no torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..describe.time_left.measurement import timing_seconds
from ..errors import EngineError, TimeIsUp, WorkerFailed, WorkloadFailed
from ..estimate.calibration import Calibration
from ..estimate.guide import EstimateGuide
from ..facts.memory_breakdown import MemoryBreakdown, describe
from ..facts.not_compared import NotCompared
from ..facts.progress import SECONDS_OF_PHASES
from ..facts.provenance.read import run_facts
from ..facts.result import Boundary, DeviceFacts, Outcome, Probe, Purpose, Reason, RunResult, Timings
from ..machine.execution import Emit, Execution
from ..machine.watch import usable_cores
from ..race.speed.comparison import Comparison, SpeedComparison, TimedBlock, candidates_of, comparison_lines
from ..search.boundary import (
    boundary_cut_short,
    boundary_of_check,
    boundary_of_earlier_run,
    boundary_of_soak,
    boundary_of_soak_cut_short,
)
from ..search.foreign_memory import GROWTH_BYTES, bytes_taken_by_others, without_overhead
from ..search.reserve import EDGE_PROBES, largest_with_reserve, sizes_with_reserve
from ..search.resume import EarlierAttempt
from ..search.unguided import Found, SearchLimits, Trial, Try, curve_sizes, next_soak_size
from ..settings.lora_targets import describe_targets
from ..settings.spec import MEMORY_STEPS, RunSpec, soak_steps
from ..settings.training_ranks import check_measured
from ..settings.training_spec import named_by_profile
from ..text.units import format_bytes
from ..trainings.catalogue.handle import CRASHES, WorkerHandle
from ..trainings.sweep import Sweep, size_to_explain

FOREIGN_MEMORY_REPEATS = 2
FOREIGN_MEMORY_PAUSE_SECONDS = 5.0
NOT_EXPLAINED = (
    "what filled the memory is not known: the model is compiled or did not fit, or its device reports nothing"
)

Keep = Callable[[RunResult], None]
Hold = Callable[[DeviceFacts], AbstractContextManager[Any]]


def measure(
    spec: RunSpec,
    emit: Emit = lambda _: None,
    *,
    worker: WorkerHandle | None = None,
    earlier: EarlierAttempt | None = None,
    keep: Keep = lambda _: None,
    estimates: bool = True,
    explains: bool = True,
    calibration: Calibration | None = None,
    hold: Hold | None = None,
    started_as: Mapping[str, Any] | None = None,
) -> RunResult:
    """Run the whole analysis of `spec`. Raises EngineError if it cannot be carried through.

    `earlier`: an interrupted attempt, see `resume`. `keep` stores the result before its event; its OSError is logged.
    `estimates`: start the search near an estimate, `calibration`: for it. `explains`: find out what filled the memory.
    `started_as`: `run_facts()`, if read before. `hold` holds the device during the run; it gets the device's facts.
    """
    check_measured(spec)
    started_as = started_as or run_facts()
    execution = Execution(emit, spec.time_budget_seconds)
    with (
        named_by_profile(spec),
        own_worker(spec, execution, hold) if worker is None else nullcontext(worker) as used,
    ):
        sweep = WorkerSweep(
            spec=spec,
            execution=execution,
            started_as=started_as,
            worker=used,
            guide=EstimateGuide(spec, calibration, execution.log),
            earlier=earlier,
            estimates=estimates,
            explains=explains,
        )
        return execution.finish(sweep.run(), keep)


@contextmanager
def own_worker(
    spec: RunSpec, execution: Execution, hold: Hold | None, variables: Mapping[str, str] | None = None
) -> Iterator[WorkerHandle]:
    """Start a worker, and hold its device while it is used. Waiting for the device costs the run no time."""
    with WorkerHandle(spec, variables) as worker:
        worker.report = execution.stage
        if hold is None:
            yield worker
            return
        facts, spent_seconds = worker.facts(), execution.seconds
        with hold(facts):
            execution.restart_clock(spent_seconds)
            yield worker


@dataclass(kw_only=True)
class WorkerSweep(Sweep):
    """A sweep whose probes are steps in a worker. The first `carried` probes are of an earlier attempt."""

    what_runs = "a training step"
    spec: RunSpec
    worker: WorkerHandle
    guide: EstimateGuide
    earlier: EarlierAttempt | None
    estimates: bool
    explains: bool
    carried: int = 0
    known_boundary: Boundary | None = None
    tolerated_beside_bytes: int = 0

    @property
    def device(self) -> DeviceFacts:
        """The device as the worker last saw it: other processes may have come to it."""
        assert self.worker.device is not None
        return self.worker.device

    def run(self) -> RunResult:
        self.execution.begin(self.spec)
        if (layers := describe_targets(self.spec.lora_targets, self.spec.workload)) is not None:
            self.execution.log(layers)
        is_search = self.spec.check_batch_size is None
        if self.estimates and is_search and (self.earlier is None or self.earlier.boundary is None):
            self._trace()
        self.execution.timed("preparing", self._open)
        if (estimate := self.guide.estimate(self.device, self.environment)) is not None:
            self.execution.emit_event("estimate", estimate=estimate.to_dict())
        boundary, comparison = self._measure() if is_search else self._check()
        explains = self.explains and self.execution.stopped_by is None
        breakdown = self.execution.timed("explaining", lambda: self._explained(boundary)) if explains else None
        result = self.guide.graded(self.answer(boundary, comparison, self._timings()))
        return replace(result, memory_breakdown=breakdown)

    def _measure(self) -> tuple[Boundary, Comparison]:
        comparison = Comparison(why=NotCompared.RUN_ENDED)
        found = self.known_boundary or self.execution.timed("searching", self.search)
        if not found.largest_batch_size or found.reason is Reason.TIME_BUDGET:
            return found, comparison
        boundary = self.known_boundary or self.execution.timed("soaking", lambda: self._soak(found))
        if boundary.largest_batch_size:
            stopped = Comparison(why=NotCompared.STOPPED)
            comparison = self.execution.unless_stopped(lambda: self._measure_speeds(boundary), stopped)
        return boundary, comparison

    def _measure_speeds(self, boundary: Boundary) -> Comparison:
        if self.known_boundary is None:
            self.execution.timed("curve", lambda: self._curve(boundary))
        if not self.spec.compare_speed:
            return Comparison(why=NotCompared.LEFT_OUT)
        known = self.known_before_speeds(boundary)
        return self.execution.timed("timing", lambda: self._compare_speeds(boundary), known=known)

    def _check(self) -> tuple[Boundary, Comparison]:
        size = self.spec.check_batch_size or 0
        comparison = Comparison(why=NotCompared.ONE_SIZE)
        try:
            probe = self.execution.timed("soaking", lambda: self.probe(size, Purpose.SOAK))
        except TimeIsUp:
            return boundary_cut_short(self.probes), comparison
        steps = soak_steps(self.spec.soak_steps, self.device.kind)
        return boundary_of_check(probe, steps, self.probes, self.device), comparison

    def search_alone(self) -> tuple[Boundary, int | None]:
        """Find the boundary and the largest size that keeps the reserve, None where the search was cut short."""
        if self.estimates:
            self._trace()
        self._open()
        if self.guide.estimate(self.device, self.environment) is not None:
            self.execution.log("the search begins at an estimate")
        boundary = self.search()
        try:
            if boundary.largest_batch_size:
                self._probe_at_reserve(boundary)
        except TimeIsUp:
            self.execution.log("the time ended before the size with the reserve was found", "warning")
        points = {} if boundary.reason is Reason.TIME_BUDGET else self.points(boundary)
        reserve = self.reserve_of(boundary)
        return boundary, largest_with_reserve(points, self.limit_bytes, reserve) if points else None

    def _explained(self, boundary: Boundary) -> MemoryBreakdown | None:
        """Find out what filled the memory, after everything else, in a new process; a failure is only logged."""
        size = size_to_explain(boundary, self.probes, is_search=self.spec.check_batch_size is None)
        if size is None:
            return None
        progress = partial(self._say_step, size, "explain")
        try:
            self.execution.check_deadline()
            seconds = self.execution.seconds_left
            found = self.worker.explain(size, steps=MEMORY_STEPS, seconds=seconds, progress=progress)
        except (EngineError, TimeIsUp) as exc:
            self.execution.log(f"what filled the memory was not found out: {exc}", "warning")
            return None
        self.execution.log(NOT_EXPLAINED if found is None else describe(found))
        return found

    def _trace(self) -> None:
        """Have the steps traced. The seconds of imports, which a run needs in any case, are not the estimate's."""
        imports_before = self.worker.import_seconds
        self.execution.timed("estimating", lambda: self.guide.trace(self.worker.trace, self.execution.seconds_left))
        self.guide.seconds = self.execution.phase_seconds["estimating"] - (self.worker.import_seconds - imports_before)

    def _open(self) -> None:
        self.worker.open()
        self.environment = {**self.worker.environment, **self.started_as}
        self.execution.emit_event("device", device=self.device.to_dict(), environment=self.environment)
        if self.device.is_shared:
            self.execution.log("other processes hold memory on this device: the run is marked as shared", "warning")
        if self.earlier is not None:
            self._carry(self.earlier)

    def _carry(self, earlier: EarlierAttempt) -> None:
        changed = earlier.differences(self.device, self.worker.environment)
        if changed:
            self.execution.log(f"an earlier attempt is not resumed: {' and '.join(changed)} changed")
            return
        self.known_boundary = None if earlier.boundary is None else boundary_of_earlier_run(earlier.boundary)
        for probe in earlier.carried():
            self.record(probe, is_carried=True)
        self.carried = len(self.probes)
        source = "attempt" if earlier.boundary is None else "run, with the limit it found,"
        self.execution.log(
            f"{self.carried} probes of an earlier {source} are carried over: same device, same environment"
        )

    def search(self) -> Boundary:
        """Find the largest size that trains, guided by the estimate, and the next one refused in a fresh process."""
        self.guide.start()
        return super().search()

    def decide(self) -> Try | Found:
        limits = SearchLimits(
            memory_bytes=self.limit_bytes,
            start=min(self.spec.start_batch_size or self.spec.current_batch_size, self.spec.max_batch_size),
            maximum=self.spec.max_batch_size,
        )
        if self.spec.memory_limit_bytes is None:
            limits = without_overhead(limits, self.searched)
        return self.guide.decide(_trials(self.searched), limits)

    def _soak(self, boundary: Boundary) -> Boundary:
        largest = boundary.largest_batch_size or 0
        steps = soak_steps(self.spec.soak_steps, self.device.kind)
        soaks: list[Probe] = []
        try:
            while (size := next_soak_size(_trials(soaks), largest)) is not None:
                self.worker.close()
                soaks.append(self.probe(size, Purpose.SOAK))
        except TimeIsUp:
            return boundary_of_soak_cut_short(boundary, soaks, steps, self.searched)
        has_fitted_now = any(p.fits and p.batch_size == largest for p in self.probes[self.carried :])
        return boundary_of_soak(boundary, soaks, steps, self.device, had_trained_earlier=not has_fitted_now)

    def _curve(self, boundary: Boundary) -> None:
        largest = boundary.largest_batch_size or 0
        try:
            self._probe_at_reserve(boundary)
            searched_sizes = {p.batch_size for p in self.searched if p.fits}
            known = {p.batch_size for p in self.probes if p.fits or p.batch_size > largest}
            wanted = {*curve_sizes(sorted(searched_sizes), largest), largest}
            is_open = not boundary.certified or self.spec.current_batch_size <= largest  # else it is known not to fit
            if is_open and self.spec.current_batch_size <= self.spec.max_batch_size:
                wanted.add(self.spec.current_batch_size)
            for size in sorted(wanted - known - {0}):
                self._probe_of_curve(size, largest)
        except TimeIsUp:
            self.execution.log("the time budget ended before the curve was complete", "warning")

    def _probe_at_reserve(self, boundary: Boundary) -> None:
        for _ in range(EDGE_PROBES):
            if (edge := self.next_size_at_reserve(boundary)) is not None:
                self._probe_of_curve(edge, boundary.largest_batch_size or 0)

    def _compare_speeds(self, boundary: Boundary) -> Comparison:
        points = self.points(boundary)
        keeping = sizes_with_reserve(points, self.limit_bytes, self.reserve_of(boundary))
        today, is_cpu = self.spec.current_batch_size, self.device.kind == "cpu"
        candidates = candidates_of(points, keeping, today, len(usable_cores()), shares_cores=is_cpu)
        expected_seconds = timing_seconds(candidates.sizes, today, self.probes)
        comparison = SpeedComparison(
            candidates=candidates,
            run_block=self._run_block,
            emit=lambda content: self.execution.emit_event("timing", **content),
            expected_seconds=expected_seconds or None,
        )
        self.worker.close()
        self.say_what_comparing_takes(expected_seconds)
        try:
            found = comparison.run()
        except (WorkerFailed, WorkloadFailed) as error:
            found = comparison.cut_short(NotCompared.TIMING_FAILED)
            self.execution.log(f"the timing failed: {error}", "warning")
        self.worker.close()
        for probe in comparison.probes(found):
            self.record(probe)
        for line in comparison_lines(found, today, shares_cores=is_cpu):
            self.execution.log(line, "info" if found.is_measurable else "warning")
        return found

    def _run_block(self, batch_size: int, block_seconds: float) -> TimedBlock:
        self.execution.check_deadline()
        seconds, progress = self.execution.seconds_left, partial(self._say_step, batch_size, Purpose.TIMING)
        return self.worker.time(batch_size, block_seconds=block_seconds, seconds=seconds, progress=progress)

    def _say_step(self, batch_size: int, purpose: str, stage: str, step: int) -> None:
        self.execution.emit_event("progress", batch_size=batch_size, purpose=purpose, stage=stage, step=step)

    def _probe_of_curve(self, batch_size: int, largest: int) -> None:
        """Probe a size that is known to fit; if a used process refuses it, repeat it once in a fresh process."""
        probe = self.probe(batch_size, Purpose.CURVE)
        if not probe.fits and not probe.fresh_process and batch_size <= largest:
            self.probe(batch_size, Purpose.CURVE)

    def probe(self, batch_size: int, purpose: Purpose, *, fresh: bool = False) -> Probe:
        """Run one probe, and again if others had newly taken the memory that was refused. Raises TimeIsUp."""
        if fresh and not self.worker.is_fresh:
            self.execution.log(f"batch {batch_size} is tested in a fresh process, to certify the limit")
            self.worker.close()
        probe = self.probe_once(batch_size, purpose)
        for _ in range(FOREIGN_MEMORY_REPEATS):
            if not (taken_bytes := self._newly_taken_by_others(probe)):
                return probe
            self.execution.log(
                f"others took {format_bytes(taken_bytes)} of the device: batch {batch_size} is tested again", "warning"
            )
            self.worker.close()
            time.sleep(min(FOREIGN_MEMORY_PAUSE_SECONDS, max(self.execution.seconds_left, 0)))
            probe = self.probe_once(batch_size, purpose)
        if self._newly_taken_by_others(probe):
            self.tolerated_beside_bytes = probe.beside_bytes or 0
        return probe

    def _newly_taken_by_others(self, probe: Probe) -> int:
        """Bytes that others took of the device when it refused this probe, unless they were waited for before."""
        if probe.outcome is not Outcome.OUT_OF_MEMORY:
            return 0
        if (probe.beside_bytes or 0) <= self.tolerated_beside_bytes + GROWTH_BYTES:
            return 0
        return bytes_taken_by_others(probe, self.probes, self.device)

    def execute(self, batch_size: int, purpose: Purpose) -> Probe:
        """Have the worker run the steps. A crash above a size that trained is an error of this size alone."""
        is_soak, is_fresh = purpose is Purpose.SOAK, self.worker.is_fresh
        try:
            return self.worker.probe(
                batch_size,
                steps=soak_steps(self.spec.soak_steps, self.device.kind) if is_soak else MEMORY_STEPS,
                with_kinds=not is_soak,
                seconds=self.execution.seconds_left,
                progress=partial(self._say_step, batch_size, purpose),
            )
        except WorkerFailed as error:
            if error.status not in CRASHES or not self.has_trained_below(batch_size):
                raise
            return Probe(
                batch_size, Outcome.ERROR, fresh_process=is_fresh, error_type="Crash", error_message=str(error)
            )

    def _timings(self) -> Timings:
        return Timings(
            total_seconds=self.execution.seconds,
            import_seconds=self.worker.import_seconds,
            model_seconds=self.worker.model_seconds,
            processes=self.worker.sessions,
            carried_seconds=sum(p.wall_seconds for p in self.probes[: self.carried]),
            estimate_seconds=self.guide.seconds,
            **{name: self.execution.phase_seconds.get(phase, 0.0) for phase, name in SECONDS_OF_PHASES.items()},
        )


def _trials(probes: Sequence[Probe]) -> list[Trial]:
    return [Trial(p.batch_size, p.fits, p.memory_bytes if p.fits else None, p.fresh_process) for p in probes]
