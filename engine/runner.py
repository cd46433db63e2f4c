"""Joins search and probes into a run: search, soak, curve, answer. Knows no torch.

`measure` reports the run as it happens, one event at a time (the lines of `--events`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from .build_result import answer, measured_points
from .errors import TimeIsUp, WorkerFailed, WorkloadFailed
from .estimate.calibration import Calibration
from .estimate.guide import EstimateGuide
from .machine.watch import usable_cores
from .memory_breakdown import MemoryBreakdown
from .plan import EDGE_PROBES, SOAK_STEPS, SOAK_STEPS_CPU
from .progress import SECONDS_OF_PHASES
from .provenance.read import run_facts
from .result import Boundary, DeviceFacts, Outcome, Probe, Purpose, Reason, RunResult, Timings
from .resume import EarlierAttempt
from .search.boundary import (
    boundary_of_check,
    boundary_of_earlier_run,
    boundary_of_search,
    boundary_of_soak,
    boundary_of_soak_cut_short,
    with_current_size_note,
)
from .search.foreign_memory import GROWTH_BYTES, bytes_taken_by_others, without_overhead
from .search.reserve import edge_size, sizes_with_reserve
from .search.unguided import Found, Limits, Trial, curve_sizes, next_soak_size
from .spec import MEMORY_STEPS, SCHEMA, RunSpec
from .speed.comparison import Comparison, SpeedComparison, TimedBlock, candidates_of, comparison_lines
from .units import format_bytes
from .what_filled import explain, size_to_explain
from .worker.handle import CRASHES, WorkerHandle
from .worker.prober import Prober

FOREIGN_MEMORY_REPEATS = 2
FOREIGN_MEMORY_PAUSE_SECONDS = 5.0

Emit = Callable[[dict[str, Any]], None]
Keep = Callable[[RunResult], None]
Hold = Callable[[DeviceFacts], AbstractContextManager[Any]]


def measure(
    spec: RunSpec,
    emit: Emit = lambda _: None,
    *,
    worker: Prober | None = None,
    earlier: EarlierAttempt | None = None,
    keep: Keep = lambda _: None,
    estimates: bool = True,
    explains: bool = True,
    calibration: Calibration | None = None,
    hold: Hold | None = None,
    started_as: Mapping[str, Any] | None = None,
) -> RunResult:
    """Run the whole analysis of `spec`. Raises EngineError if it cannot be carried through.

    `earlier`: the probes of an interrupted attempt, taken over where device and environment are the same. With the
    boundary of a finished run only the speeds are compared again.
    `keep` stores the result before its event is emitted; an OSError of it is logged, and the run continues.
    `estimates`: begin with an estimate, so that the search starts near the boundary. A failed estimate is logged.
    `explains`: end with one more process, which finds out what filled the memory.
    `calibration`: that of this class of card, for the estimate. `started_as`: `run_facts()`, where read before.
    `hold` holds the device during the run, so that no other run disturbs it; it is called with the device's facts.
    """
    sweep = partial(_Sweep, spec, emit, earlier, keep, estimates, explains, calibration, started_as or run_facts())
    if worker is not None:
        return sweep(worker).run()
    with WorkerHandle(spec) as own:
        started = time.monotonic()
        own.report = partial(_emit_stage, emit, started)
        if hold is None:
            return sweep(own, started=started).run()
        facts = own.facts()
        spent_seconds = time.monotonic() - started
        with hold(facts):  # to wait for the device costs the run nothing of its time
            started = time.monotonic() - spent_seconds
            own.report = partial(_emit_stage, emit, started)
            return sweep(own, started=started).run()


def _emit_stage(emit: Emit, started: float, stage: str) -> None:
    emit({"event": "stage", "seconds": round(time.monotonic() - started, 3), "stage": stage})


@dataclass
class _Sweep:
    """One run in progress: its probes so far, of which the first `carried` are an earlier attempt's, and its clock."""

    spec: RunSpec
    emit: Emit
    earlier: EarlierAttempt | None
    keep: Keep
    estimates: bool
    explains: bool
    calibration: Calibration | None
    started_as: Mapping[str, Any]
    worker: Prober
    carried: int = 0
    known_boundary: Boundary | None = None
    tolerated_beside_bytes: int = 0
    started: float = field(default_factory=time.monotonic)
    probes: list[Probe] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.guide = EstimateGuide(self.spec, self.calibration, self.log)

    def run(self) -> RunResult:
        self._emit_event("started", schema=SCHEMA, spec=self.spec.to_dict())
        is_search = self.spec.check_batch_size is None
        if self.estimates and is_search and (self.earlier is None or self.earlier.boundary is None):
            self._trace()
        self._timed("preparing", self._open)
        if (estimate := self.guide.estimate(self._device, self.environment)) is not None:
            self._emit_event("estimate", estimate=estimate.to_dict())
        boundary, comparison = self._measure() if is_search else self._check()
        breakdown = self._timed("explaining", lambda: self._explained(boundary)) if self.explains else None
        result = self.guide.graded(self._answer(with_current_size_note(boundary, self.spec), comparison))
        result = replace(result, memory_breakdown=breakdown)
        try:
            self.keep(result)
        except OSError as exc:
            self.log(f"the result could not be written to a file: {exc}", "warning")
        self._emit_event("phase", phase="finished")
        self._emit_event("result", result=result.to_dict())
        return result

    def _measure(self) -> tuple[Boundary, Comparison]:
        """Find the boundary, unless it is known, and compare the speeds."""
        comparison = Comparison(is_measurable=False, reason="the run ended before the speeds were compared")
        found = self.known_boundary or self._timed("searching", self._search)
        if not found.largest_batch_size or found.reason is Reason.TIME_BUDGET:
            return found, comparison
        boundary = self.known_boundary or self._timed("soaking", lambda: self._soak(found))
        if boundary.largest_batch_size:
            if self.known_boundary is None:
                self._timed("curve", lambda: self._curve(boundary))
            comparison = self._timed("timing", lambda: self._compare_speeds(boundary))
        return boundary, comparison

    def _check(self) -> tuple[Boundary, Comparison]:
        """Run only the requested size, for the steps of a soak run."""
        size, steps = self.spec.check_batch_size or 0, self._soak_steps
        comparison = Comparison(is_measurable=False, reason="one batch size was checked, and no speeds compared")
        try:
            probe = self._timed("soaking", lambda: self._probe(size, Purpose.SOAK, steps))
        except TimeIsUp:
            return Boundary(None, certified=False, refused_batch_size=None, reason=Reason.TIME_BUDGET), comparison
        return boundary_of_check(probe, steps, self.probes, self._device), comparison

    def _explained(self, boundary: Boundary) -> MemoryBreakdown | None:
        """Find out what filled the memory, after everything else: it has no part in what is measured."""
        size = size_to_explain(boundary, self.probes, is_search=self.spec.check_batch_size is None)
        progress = partial(self._say_step, size or 0, "explain")
        return explain(self.worker, size, seconds_left=self._seconds_left, progress=progress, log=self.log)

    @property
    def _soak_steps(self) -> int:
        return self.spec.soak_steps or (SOAK_STEPS_CPU if self._device.kind == "cpu" else SOAK_STEPS)

    def _answer(self, boundary: Boundary, comparison: Comparison) -> RunResult:
        environment, timings, device = self.environment, self._timings(), self._device
        return answer(self.spec, device, boundary, self.probes, comparison, environment=environment, timings=timings)

    def _emit_event(self, event: str, **content: Any) -> None:
        self.emit({"event": event, "seconds": round(time.monotonic() - self.started, 3), **content})

    def log(self, message: str, level: str = "info") -> None:
        self._emit_event("log", level=level, message=message)

    @property
    def _device(self) -> DeviceFacts:
        assert self.worker.device is not None
        return self.worker.device

    @property
    def _limit_bytes(self) -> int:
        return self._device.limit_bytes or self._device.capacity_bytes

    @property
    def _seconds_left(self) -> float:
        return self.spec.time_budget_seconds - (time.monotonic() - self.started)

    def _trace(self) -> None:
        """Have the steps traced. A run needs the imports of that in any case: their seconds are not the estimate's."""
        imports_before = self.worker.import_seconds
        self._timed("estimating", lambda: self.guide.trace(self.worker.trace, self._seconds_left))
        self.guide.seconds = self.seconds["estimating"] - (self.worker.import_seconds - imports_before)

    def _open(self) -> None:
        self.worker.open()
        self.environment = {**self.worker.environment, **self.started_as}
        self._emit_event("device", device=self._device.to_dict(), environment=self.environment)
        if self._device.is_shared:
            self.log("other processes hold memory on this device: the run is marked as shared", "warning")
        if self.earlier is not None:
            self._carry(self.earlier)

    def _carry(self, earlier: EarlierAttempt) -> None:
        """Take over the probes of an earlier attempt, if device and environment are the same."""
        changed = earlier.differences(self._device, self.worker.environment)
        if changed:
            self.log(f"an earlier attempt is not resumed: {' and '.join(changed)} changed")
            return
        self.known_boundary = None if earlier.boundary is None else boundary_of_earlier_run(earlier.boundary)
        self.probes = earlier.carried()
        self.carried = len(self.probes)
        for probe in self.probes:
            self._emit_event("probe", probe=probe.to_dict(), is_carried=True)
        source = "attempt" if earlier.boundary is None else "run, with the limit it found,"
        self.log(f"{self.carried} probes of an earlier {source} are carried over: same device, same environment")

    @property
    def _searched(self) -> list[Probe]:
        """The probes that the search rests on. Carried ones of the curve were never meant to bound it."""
        return [p for p in self.probes if p.purpose in (Purpose.SEARCH, Purpose.CONFIRM)]

    def _search(self) -> Boundary:
        """Find the largest size that trains, and the next one refused in a fresh process."""
        limits = Limits(
            memory_bytes=self._limit_bytes,
            start=min(self.spec.start_batch_size or self.spec.current_batch_size, self.spec.max_batch_size),
            maximum=self.spec.max_batch_size,
        )
        is_whole = self.spec.memory_limit_bytes is None
        self.guide.start()
        try:
            while True:
                room = without_overhead(limits, self._searched) if is_whole else limits
                if isinstance(step := self.guide.decide(_trials(self._searched), room), Found):
                    break
                if step.fresh_process and not self.worker.is_fresh:
                    self.log(f"batch {step.batch_size} is tested in a fresh process, to certify the limit")
                    self.worker.close()
                is_repeat = any(p.batch_size == step.batch_size for p in self._searched)
                self._probe(step.batch_size, Purpose.CONFIRM if is_repeat else Purpose.SEARCH)
        except TimeIsUp:
            largest = max((p.batch_size for p in self._searched if p.fits), default=None)
            return Boundary(largest, certified=False, refused_batch_size=None, reason=Reason.TIME_BUDGET)
        return boundary_of_search(step, self._searched, self._device)

    def _soak(self, boundary: Boundary) -> Boundary:
        """Run many steps at the boundary in a fresh process; if that fails, go down to a size that succeeds."""
        largest = boundary.largest_batch_size or 0
        steps = self._soak_steps
        soaks: list[Probe] = []
        try:
            while (size := next_soak_size(_trials(soaks), largest)) is not None:
                self.worker.close()
                soaks.append(self._probe(size, Purpose.SOAK, steps=steps))
        except TimeIsUp:
            return boundary_of_soak_cut_short(boundary, soaks, steps, self._searched)
        return boundary_of_soak(boundary, soaks, steps, self._device, self._when(largest))

    def _when(self, batch_size: int) -> str:
        """Return text that marks a size that fitted only in an earlier attempt."""
        has_fitted_now = any(p.fits and p.batch_size == batch_size for p in self.probes[self.carried :])
        return "" if has_fitted_now else " in an earlier attempt"

    def _curve(self, boundary: Boundary) -> None:
        """Measure smaller sizes, for the curves and to find the fastest, and the largest size with the reserve."""
        largest = boundary.largest_batch_size or 0
        searched_sizes = {p.batch_size for p in self._searched if p.fits}
        known = {p.batch_size for p in self.probes if p.fits}
        known |= {p.batch_size for p in self.probes if not p.fits and p.batch_size > largest}
        wanted = {*curve_sizes(sorted(searched_sizes), largest), largest}
        if self.spec.current_batch_size <= self.spec.max_batch_size:
            wanted.add(self.spec.current_batch_size)
        try:
            for size in sorted(wanted - known - {0}):
                self._probe_again_if_spoiled(size, Purpose.CURVE, largest)
            for _ in range(EDGE_PROBES):
                points = measured_points(self.probes, self._device, largest)
                edge = edge_size(points, self._limit_bytes, self.spec.reserve_fraction)
                if edge is None or edge in {p.batch_size for p in self.probes}:
                    break
                self._probe_again_if_spoiled(edge, Purpose.CURVE, largest)
        except TimeIsUp:
            self.log("the time budget ended before the curve was complete", "warning")

    def _compare_speeds(self, boundary: Boundary) -> Comparison:
        """Time today's size, the recommended and the fastest in rounds, in a process of their own."""
        points = measured_points(self.probes, self._device, boundary.largest_batch_size or 0)
        keeping = sizes_with_reserve(points, self._limit_bytes, self.spec.reserve_fraction)
        candidates = candidates_of(points, keeping, self.spec.current_batch_size, len(usable_cores()))
        comparison = SpeedComparison(candidates, self._run_block, lambda content: self._emit_event("timing", **content))
        self.worker.close()
        try:
            found = comparison.run()
        except TimeIsUp:
            found = comparison.cut_short("the time budget ended before the speeds were compared")
        except (WorkerFailed, WorkloadFailed) as error:
            found = comparison.cut_short(f"the timing failed: {error}")
        self.worker.close()
        for probe in comparison.probes(found):
            self.probes.append(probe)
            self._emit_event("probe", probe=probe.to_dict())
        for line in comparison_lines(found):
            self.log(line, "info" if found.is_measurable else "warning")
        return found

    def _run_block(self, batch_size: int, block_seconds: float) -> TimedBlock:
        if self._seconds_left <= 0:
            raise TimeIsUp("the time budget is spent")
        progress = partial(self._say_step, batch_size, Purpose.TIMING)
        return self.worker.time(batch_size, block_seconds=block_seconds, seconds=self._seconds_left, progress=progress)

    def _say_step(self, batch_size: int, purpose: str, stage: str, step: int) -> None:
        self._emit_event("progress", batch_size=batch_size, purpose=purpose, stage=stage, step=step)

    def _probe_again_if_spoiled(self, batch_size: int, purpose: Purpose, largest: int) -> None:
        """Probe a size that is known to fit; if a used process refuses it, repeat it once in a fresh process."""
        probe = self._probe(batch_size, purpose)
        if not probe.fits and not probe.fresh_process and batch_size <= largest:
            self._probe(batch_size, purpose)

    def _probe(self, batch_size: int, purpose: Purpose, steps: int = MEMORY_STEPS) -> Probe:
        """Run one probe, and again if others held the memory that it was refused.

        A tenant that stays is waited for once: later refusals beside the same tenant are taken as they are, and what
        they are evidence of is decided with the boundary. Raises TimeIsUp when the run's time budget is spent.
        """
        probe = self._probe_once(batch_size, purpose, steps)
        for _ in range(FOREIGN_MEMORY_REPEATS):
            if not (taken_bytes := self._newly_taken_by_others(probe)):
                return probe
            self.log(
                f"others took {format_bytes(taken_bytes)} of the device: batch {batch_size} is tested again", "warning"
            )
            self.worker.close()
            time.sleep(min(FOREIGN_MEMORY_PAUSE_SECONDS, max(self._seconds_left, 0)))
            probe = self._probe_once(batch_size, purpose, steps)
        if self._newly_taken_by_others(probe):
            self.tolerated_beside_bytes = probe.beside_bytes or 0
        return probe

    def _newly_taken_by_others(self, probe: Probe) -> int:
        """Bytes that others took of the device when it refused this probe, unless they were waited for before."""
        if probe.outcome is not Outcome.OUT_OF_MEMORY:
            return 0
        if (probe.beside_bytes or 0) <= self.tolerated_beside_bytes + GROWTH_BYTES:
            return 0
        return bytes_taken_by_others(probe, self.probes, self._device)

    def _probe_once(self, batch_size: int, purpose: Purpose, steps: int) -> Probe:
        if self._seconds_left <= 0:
            raise TimeIsUp("the time budget is spent")
        self._emit_event("probe_started", batch_size=batch_size, purpose=purpose)
        with_kinds, progress = purpose is not Purpose.SOAK, partial(self._say_step, batch_size, purpose)
        seconds, fresh = self._seconds_left, self.worker.is_fresh
        try:
            probe = self.worker.probe(
                batch_size, steps=steps, with_kinds=with_kinds, seconds=seconds, progress=progress
            )
        except WorkerFailed as error:
            if error.status not in CRASHES or not self._has_trained_below(batch_size):
                raise
            probe = Probe(batch_size, Outcome.ERROR, fresh_process=fresh, error_type="Crash", error_message=str(error))
        probe = replace(probe, purpose=purpose)
        self.probes.append(probe)
        self._emit_event("probe", probe=probe.to_dict())
        if probe.outcome is Outcome.ERROR and not self._has_trained_below(batch_size):
            raise WorkloadFailed(f"a training step failed: {probe.error_type}: {probe.error_message}")
        return probe

    def _has_trained_below(self, batch_size: int) -> bool:
        return any(p.fits and p.batch_size < batch_size for p in self.probes)

    def _timed(self, phase: str, work: Callable[[], Any]) -> Any:
        self._emit_event("phase", phase=phase)
        before = time.monotonic()
        outcome = work()
        self.seconds[phase] = time.monotonic() - before
        return outcome

    def _timings(self) -> Timings:
        return Timings(
            total_seconds=time.monotonic() - self.started,
            import_seconds=self.worker.import_seconds,
            model_seconds=self.worker.model_seconds,
            processes=self.worker.sessions,
            carried_seconds=sum(p.wall_seconds for p in self.probes[: self.carried]),
            estimate_seconds=self.guide.seconds,
            **{name: self.seconds.get(phase, 0.0) for phase, name in SECONDS_OF_PHASES.items()},
        )


def _trials(probes: Sequence[Probe]) -> list[Trial]:
    return [Trial(p.batch_size, p.fits, p.memory_bytes if p.fits else None, p.fresh_process) for p in probes]
