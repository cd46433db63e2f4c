"""The search over starts of a training, and its result. Says what happens by the events that every run says it with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..build_result import answer, measured_points
from ..errors import CommandUntunable, TimeIsUp, WorkloadFailed
from ..machine.scratch import scratch_folder
from ..provenance.parse import mig_profile
from ..provenance.read import run_facts
from ..result import Boundary, DeviceFacts, Outcome, Probe, Purpose, Reason, RunResult, Timings
from ..search.boundary import boundary_of_search, with_current_size_note, with_note
from ..search.reserve import edge_size, sizes_with_reserve
from ..search.unguided import Found
from ..spec import SCHEMA
from ..speed.comparison import Comparison
from .devices import facts_of
from .disk import changed_files
from .evidence import Ended, Evidence, check_memory_rises, evidence_of
from .launch import Begin, Watching, begin_command, start
from .next_size import Start, next_size
from .reading import Reading
from .script import script_facts
from .spec import FunctionSpec, TuneSpec
from .training import Throughput, Training
from .turns import InTurns, mean_speed, steps_to_time
from .whole_run import describe_peak, describe_whole_run

MEMORY_STEPS, LEAST_STEPS = 5, 3
LEAST_SECONDS, PATIENCE = 120.0, 20  # a later start may take so many times as long as the longest before
NOT_COMPARED = "each size was timed in a start of its own: speeds of separate starts are not compared"
ALIVE_SECONDS = 5.0
FILES_NAMED = 5

Emit = Callable[[dict[str, Any]], None]
Spec = TuneSpec | FunctionSpec


@dataclass(frozen=True, slots=True)
class TuneResult:
    """The result of a run, and of its training."""

    result: RunResult
    training: Training

    @property
    def largest_batch_size(self) -> int | None:
        """The largest that trained; 0 where not even 1 did, None where none is known."""
        return self.result.boundary.largest_batch_size

    @property
    def is_certified(self) -> bool:
        """Whether the next larger size ran out of memory in a fresh process."""
        return self.result.boundary.certified

    @property
    def recommended_batch_size(self) -> int | None:
        """The largest measured size that leaves the reserve of memory free."""
        return self.result.recommended.batch_size if self.result.recommended else None

    def to_dict(self) -> dict[str, Any]:
        return {**self.result.to_dict(), "training": asdict(self.training)}


def tune(
    spec: Spec,
    emit: Emit = lambda _: None,
    *,
    keep: Callable[[TuneResult], None] = lambda _: None,
    begin: Begin | None = None,
    started_as: Mapping[str, Any] | None = None,
) -> TuneResult:
    """Find the largest batch size that is trained. Raises CommandUntunable and WorkloadFailed.

    `begin` makes a start; left out, the spec's command is started. `started_as`: `run_facts()` of a run whose key is
    known before it starts; left out, they are read here.
    """
    return _Tuning(spec, emit, keep, begin or partial(begin_command, spec), started_as or run_facts()).run()


@dataclass
class _Tuning:
    """One search in progress: its probes and what else the starts showed."""

    spec: Spec
    emit: Emit
    keep: Callable[[TuneResult], None]
    begin: Begin
    started_as: Mapping[str, Any]
    started: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.time)
    probes: list[Probe] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    evidence: dict[int, Evidence] = field(default_factory=dict)
    device: DeviceFacts | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    most_samples: int | None = None
    said_at: float = 0.0
    in_turns: InTurns | None = None
    rows_folder: str | None = None

    def run(self) -> TuneResult:
        """Search, and say all that happens; the result."""
        with scratch_folder() as self.rows_folder:
            return self._run()

    def _run(self) -> TuneResult:
        self.say("started", schema=SCHEMA, spec=self.spec.to_dict())
        self.say("phase", phase="searching")
        boundary = self._search()
        searched = time.monotonic() - self.started
        comparison = Comparison(is_measurable=False, reason=NOT_COMPARED)
        if boundary.largest_batch_size and boundary.reason is not Reason.TIME_BUDGET:
            self.say("phase", phase="curve")
            self._start_at_the_reserve(boundary.largest_batch_size)
            if self.spec.compare_speed:
                self.say("phase", phase="timing")
                comparison = self._compare_speed(boundary.largest_batch_size)
                self.log(comparison.reason or f"compared in {comparison.rounds} pairs of starts")
        result = self._result(with_current_size_note(boundary, self.spec), comparison, searched)
        try:
            self.keep(result)
        except OSError as exc:
            self.log(f"the result could not be written to a file: {exc}", "warning")
        self.say("phase", phase="finished")
        self.say("result", result=result.to_dict())
        return result

    def say(self, event: str, **content: Any) -> None:
        self.said_at = time.monotonic()
        self.emit({"event": event, "seconds": round(self.said_at - self.started, 3), **content})

    def log(self, message: str, level: str = "info") -> None:
        self.say("log", level=level, message=message)

    @property
    def _seconds_left(self) -> float:
        return self.spec.time_budget_seconds - (time.monotonic() - self.started)

    @property
    def _measures_refused(self) -> bool:
        """Whether a size beyond the limit runs to its end: on a CPU that has memory to spare for it."""
        device = self.device
        return device is not None and device.kind == "cpu" and 2 * (device.limit_bytes or 0) <= device.capacity_bytes

    def _search(self) -> Boundary:
        first = self.spec.start_batch_size or self.spec.current_batch_size
        try:
            while True:
                limit_bytes = 0 if self.device is None else self.device.limit_bytes or self.device.capacity_bytes
                maximum = min(self.most_samples or self.spec.max_batch_size, self.spec.max_batch_size)
                step = next_size(
                    self.starts,
                    memory_bytes=limit_bytes,
                    first=first,
                    maximum=maximum,
                    measures_refused=self._measures_refused,
                )
                if isinstance(step, Found):
                    return self._boundary(step)
                self._start(step, Purpose.SEARCH)
        except TimeIsUp:
            largest = max((p.batch_size for p in self.probes if p.fits), default=None)
            return Boundary(largest, certified=False, refused_batch_size=None, reason=Reason.TIME_BUDGET)

    def _boundary(self, found: Found) -> Boundary:
        if self.device is None:  # not even batch 1 came as far as a training step
            last = self.probes[-1]
            raise WorkloadFailed(f"the training came to no optimizer step: {last.error_type}: {last.error_message}")
        boundary = boundary_of_search(found, self.probes, self.device)
        if found.refused is None and found.largest == self.most_samples:
            refusal = next(p.error_message for p in self.probes if p.outcome is Outcome.SIZE_LIMIT)
            boundary = replace(boundary, reason=Reason.SIZE_LIMIT, refusal=refusal)
        steps = max((p.steps for p in self.probes if p.fits and p.batch_size == found.largest), default=0)
        of_largest = self.evidence.get(found.largest)
        boundary = replace(boundary, soak_steps=steps)
        if of_largest is None:
            return boundary
        if of_largest.whole_run is not None:
            boundary = with_note(boundary, f"{describe_whole_run(of_largest.whole_run)}; {self._peak(of_largest)}")
        return with_note(boundary, of_largest.caveat)

    def _peak(self, evidence: Evidence) -> str:
        probe = evidence.probe
        return describe_peak(probe.peak_phase, evidence.peak_shape, probe.peak_allocated_bytes or 0)

    def _start_at_the_reserve(self, largest: int) -> None:
        """Measure the largest size that keeps the reserve: the one to recommend."""
        assert self.device is not None
        points = measured_points(self.probes, self.device, largest)
        limit_bytes = self.device.limit_bytes or self.device.capacity_bytes
        size = edge_size(points, limit_bytes, self.spec.reserve_fraction)
        if size is None or size in self.evidence:
            return
        try:
            self._start(size, Purpose.CURVE)
        except TimeIsUp:
            self.log("the time budget ended before the size that keeps the reserve was measured", "warning")

    def _start(self, batch_size: int, purpose: Purpose) -> None:
        """Start the command once more; an error that is not memory above a size that trained is tried a second time."""
        self._start_once(batch_size, purpose)
        if self.probes[-1].outcome is Outcome.ERROR:
            if not any(p.fits and p.batch_size < batch_size for p in self.probes):
                probe = self.probes[-1]
                raise WorkloadFailed(f"the training failed: {probe.error_type}: {probe.error_message}")
            self.log(f"batch {batch_size} failed, and not for memory: it is started again", "warning")
            self.starts.pop()
            self._start_once(batch_size, Purpose.CONFIRM)

    def _start_once(self, batch_size: int, purpose: Purpose) -> None:
        if self._seconds_left <= 0:
            raise TimeIsUp("the time budget is spent")
        self.say("probe_started", batch_size=batch_size, purpose=purpose)
        seconds, steps = self._seconds_of_a_start, max(self.spec.soak_steps or MEMORY_STEPS, LEAST_STEPS)
        watching = Watching(steps, whole_run=self.spec.whole_run, rows_folder=self.rows_folder)
        start_once = partial(start, self.begin, batch_size, watching, on_tick=lambda: self._alive(batch_size, purpose))
        readings, ended = start_once(seconds=seconds)
        if any(reading.is_ended_by_cut for reading in readings):
            self.log(
                "the script draws a fixed number of batches: its passes over the data are not shortened", "warning"
            )
            readings, ended = start_once(seconds=seconds)
        if ended.timed_out_after_seconds is not None and self._seconds_left <= 0:
            raise TimeIsUp("the time budget is spent")
        self._learn(readings)
        evidence = self._evidence(readings, ended, batch_size)
        probe = replace(evidence.probe, purpose=purpose)
        self.evidence[batch_size] = evidence
        self.probes.append(probe)
        if self.device is not None and self.device.kind == "cpu" and not any(e.caveat for e in self.evidence.values()):
            check_memory_rises({p.batch_size: p.peak_allocated_bytes for p in self.probes if p.peak_allocated_bytes})
        if evidence.most_samples is not None:  # it says nothing of memory
            self.most_samples = evidence.most_samples
        else:
            self.starts.append(Start(batch_size, probe.fits, self._rising_bytes(evidence), evidence.resting_bytes))
        self.say("probe", probe=probe.to_dict())
        self.log(f"batch {batch_size}: one start, {ended.wall_seconds:.1f} s")

    @property
    def _seconds_of_a_start(self) -> float:
        """How long the next start may take."""
        longest = max((p.wall_seconds for p in self.probes), default=0.0)
        patience = max(LEAST_SECONDS, PATIENCE * longest) if self.probes else self._seconds_left
        return min(patience, self._seconds_left)

    def _compare_speed(self, largest: int) -> Comparison:
        """Time today's size and the largest with the reserve by starts in turns."""
        today = self.spec.current_batch_size
        try:
            if today < largest and today not in self.evidence:
                self._start(today, Purpose.CURVE)
        except (TimeIsUp, WorkloadFailed) as error:
            self.log(f"batch {today} was not measured: {error}", "warning")
        assert self.device is not None
        points = measured_points(self.probes, self.device, largest)
        limit_bytes = self.device.limit_bytes or self.device.capacity_bytes
        keeping = sizes_with_reserve(points, limit_bytes, self.spec.reserve_fraction)
        other = max(keeping)
        if today not in points:
            return Comparison(is_measurable=False, reason=f"your {today} did not train here: no speed to compare with")
        if today == other:
            return Comparison(is_measurable=False, reason=f"your {today} is the recommended size: nothing to compare")
        self.in_turns = InTurns(self._timed_start, self.say, lambda: self._seconds_left)
        found = self.in_turns.compare(today, other, may_keep_today=today in keeping and today < other)
        for probe in self.in_turns.probes(found):
            self.probes.append(probe)
            self.say("probe", probe=probe.to_dict())
        return found

    def _timed_start(self, batch_size: int) -> Probe:
        """Start a size once more, to time it."""
        if self._seconds_left <= 0:
            raise TimeIsUp
        watching = Watching(LEAST_STEPS, timed_steps=steps_to_time(self.evidence[batch_size].probe.step_seconds))
        on_tick = partial(self._alive, batch_size, Purpose.TIMING)
        readings, ended = start(self.begin, batch_size, watching, seconds=self._seconds_of_a_start, on_tick=on_tick)
        if self._seconds_left <= 0:
            raise TimeIsUp
        return self._evidence(readings, ended, batch_size).probe

    def _evidence(self, readings: list[Reading], ended: Ended, batch_size: int) -> Evidence:
        is_cpu = self.device is not None and self.device.kind == "cpu"
        limit_bytes = self.device.limit_bytes if is_cpu and self.device is not None else None
        trained = [p.batch_size for p in self.probes if p.outcome in (Outcome.FITS, Outcome.OUT_OF_MEMORY)]
        honoured = {size for size in trained if self.evidence[size].batch_axis == 0}
        batch = self.spec.batch
        return evidence_of(readings, ended, batch_size, limit_bytes=limit_bytes, batch=batch, honoured=honoured)

    def _changed_files(self) -> tuple[str, ...]:
        folder = Path(self.spec.directory or Path.cwd())
        changed = changed_files(folder, self.began, self.started_as.get("run_key"))
        if changed:
            more = f" and {len(changed) - FILES_NAMED} more" if len(changed) > FILES_NAMED else ""
            self.log(f"the training wrote in {folder}: {', '.join(changed[:FILES_NAMED])}{more}")
        return changed

    def _rising_bytes(self, evidence: Evidence) -> int | None:
        """Return the memory to draw the search's line through: what grows with the batch, where that is known."""
        probe, limit_bytes = evidence.probe, self.device.limit_bytes if self.device else None
        if probe.fits:
            return evidence.batch_peak_bytes or probe.memory_bytes
        is_known = probe.error_type == "BudgetExceeded" and (evidence.batch_peak_bytes or 0) > (limit_bytes or 0)
        return evidence.batch_peak_bytes if is_known else None

    def _alive(self, batch_size: int, purpose: Purpose) -> None:
        if time.monotonic() - self.said_at > ALIVE_SECONDS:
            self.say("progress", batch_size=batch_size, purpose=purpose, stage="memory", step=0)

    def _learn(self, readings: list[Reading]) -> None:
        """Take the device and the versions over from the first training that was seen."""
        trained = next((r for r in readings if r.data["device"]), None)
        if trained is None or self.device is not None:
            return
        self.device = facts_of(self.spec, trained)
        wanted = self.spec.device.partition(":")[0]
        if wanted not in ("auto", self.device.kind):
            raise CommandUntunable("other_device", f"the training ran on {self.device.kind}, not on {wanted}")
        armed = next(mark for mark in trained.data["marks"] if mark[1] == "armed")
        versions = {"torch": armed[2], "python": trained.data["python"]}
        script = {**script_facts(self.spec.files, self.spec.directory), "batch": self.spec.batch}
        profile = mig_profile(self.device.name)
        mig = {} if profile is None else {"gpu_mig_profile": profile}
        self.environment = {**versions, **script, **mig, **self.started_as}
        self.say("device", device=self.device.to_dict(), environment=self.environment)

    def _result(self, boundary: Boundary, comparison: Comparison, search_seconds: float) -> TuneResult:
        total = time.monotonic() - self.started
        starts = [
            *(p for p in self.probes if p.purpose is not Purpose.TIMING),
            *(self.in_turns.timed if self.in_turns else []),
        ]
        timings = Timings(
            total_seconds=total,
            search_seconds=search_seconds,
            timing_seconds=comparison.seconds,
            processes=len(starts),
        )
        if self.device is None:
            raise WorkloadFailed("the time budget ended before the training had made a step")
        result = answer(
            self.spec, self.device, boundary, self.probes, comparison, environment=self.environment, timings=timings
        )
        of_largest = self.evidence.get(boundary.largest_batch_size or 0)
        training = Training(
            micro_batches=of_largest.micro_batches if of_largest else 0,
            ranks=len(of_largest.ranks) if of_largest else 0,
            rank_peaks_bytes=of_largest.ranks if of_largest else (),
            tokens_per_step=of_largest.tokens_per_step if of_largest else None,
            waiting_for_data_fraction=of_largest.waiting_fraction if of_largest else None,
            starts=tuple((p.batch_size, round(p.wall_seconds, 3)) for p in starts),
            changed_files=self._changed_files(),
            peak=self._peak(of_largest) if of_largest else None,
            whole_run=of_largest.whole_run if of_largest else None,
            throughputs=tuple(_throughput(each) for _, each in sorted(self.evidence.items()) if each.probe.fits),
            turns=asdict(self.in_turns.turns) if self.in_turns and self.in_turns.turns else None,
        )
        return TuneResult(result, training)


def _throughput(evidence: Evidence) -> Throughput:
    probe = evidence.probe
    return Throughput(
        probe.batch_size,
        mean_speed(probe) if probe.timed_step_seconds else None,
        tokens_per_second=evidence.tokens_per_second,
        waiting_fraction=evidence.waiting_fraction,
        is_steady=probe.timing_is_steady,
    )
