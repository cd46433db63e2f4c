"""The search over starts of a training, and its result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import CommandUntunable, NoScratch, TimeIsUp, WorkloadFailed
from ...facts.not_compared import NotCompared
from ...facts.provenance.read import run_facts
from ...facts.result import Boundary, Outcome, Probe, Purpose, Reason, Timings
from ...facts.stats import decisive_probes
from ...machine.execution import Emit, Execution
from ...machine.scratch import scratch_folder
from ...race.speed.comparison import Comparison, probe_of, reason_to_log
from ...report.script_output import MARK
from ...search.boundary import boundary_of_most_starts
from ...search.differing_starts import boundary_on_ranks, boundary_where_starts_differ
from ...search.stillness import STILL_STEPS, marked_by_inputs
from ...search.unguided import Found, Try
from ...settings.spec import check_reserve
from ...text.own_words import describe_error
from .devices import check_kind, environment_of, facts_of, others_on_cards
from .judge.batch_size import SizeUnclear, other_size, unit_given, unit_of_two
from .judge.differences import MEMORY_VARIES, check_memory_rises, is_in_evaluation, refused_in_evaluation, refused_late
from .judge.evidence import NOTHING_SEEN, Evidence
from .judge.timed_steps import LEAST_STEPS
from .notes.file_changes import WrittenFiles
from .notes.progress import Ended
from .notes.reading import UNSEEN, Reading
from .result import Training, TuneResult, throughput_of
from .sizes.learned_sizes import UNKNOWN_TO_THE_SCRIPT, boundary_of_rule, is_same_error
from .sizes.next_size import Start
from .sizes.next_start import MOST_STARTS, STEPS, SearchSoFar, next_start
from .spec import FunctionSpec, TuneSpec
from .speed.seats import SweepWithSeats
from .speed.to_compare import MOST_BETWEEN, size_to_start, start_speeds
from .start.command import begin_protected
from .start.failure import describe_failure, with_its_cause
from .start.launch import Begin, Watching
from .start_times import describe_parts
from .whole_pass import check_a_pass

STARTS_AT_RESERVE_OF_RANKS = 2  # the first may take more than its neighbours say


def tune(
    spec: TuneSpec | FunctionSpec,
    emit: Emit = lambda _: None,
    *,
    keep: Callable[[TuneResult], None] = lambda _: None,
    begin: Begin | None = None,
    started_as: Mapping[str, Any] | None = None,
    may_overwrite: bool = False,
    keep_outputs: str | None = None,
) -> TuneResult:
    """Find the largest batch size that is trained. Raises CommandUntunable and WorkloadFailed.

    `begin` makes a start; left out, the spec's command is started, and its user's files stay as they are unless
    `may_overwrite`; what it writes is copied to `keep_outputs`. `started_as`: `run_facts()`, if they were read before.
    """
    execution = Execution(emit, spec.time_budget_seconds)
    files = WrittenFiles(spec.directory or os.getcwd(), execution.log)
    if begin is None:
        begin = begin_protected(spec, files, may_overwrite=may_overwrite, outputs=keep_outputs)
    with scratch_folder() as rows_folder:
        sweep = StartSweep(
            spec=spec,
            execution=execution,
            started_as=started_as or run_facts(),
            begin=begin,
            files=files,
            rows_folder=rows_folder,
            others=others_on_cards(spec),
            unit=unit_given(spec.sizes),
        )
        with sweep.seats:
            result = sweep.run()
        return execution.finish(result, keep)


@dataclass(kw_only=True)
class StartSweep(SweepWithSeats):
    """A search for the largest size, and what else its starts showed."""

    what_runs = "the training"
    rows_folder: str
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)
    most_samples: int | None = None
    last_ended: Ended = field(default_factory=Ended)
    last_words: str = ""
    """What was seen last of a start that the time budget ended."""

    def run(self) -> TuneResult:
        self.execution.begin(self.spec)
        self.execution.phase("searching")
        boundary, in_evaluation = self.search(), None
        search_seconds = self.execution.seconds
        comparison = Comparison(why=NotCompared.EMULATED if self.spec.emulated_ranks else NotCompared.STARTS_APART)
        if (largest := boundary.largest_batch_size) and boundary.reason is not Reason.TIME_BUDGET:
            self.execution.unless_stopped(lambda: self._start_at_the_reserve(boundary), None)
            in_evaluation = refused_in_evaluation(boundary, self.probes, self.evaluated)
            boundary = replace(boundary, certified=boundary.certified and in_evaluation is None)
            seen = self.evidence[largest]
            does_grow = seen.observed.does_grow(max(seen.ranks, default=0), seen.unseen, seen.micro_batches)
            if does_grow or seen.observed.evaluation_end_bytes > self.limit_bytes:
                comparison = Comparison(why=NotCompared.GROWS)
            elif self.spec.compare_speed:
                stopped = Comparison(why=NotCompared.STOPPED)
                comparison = self.execution.unless_stopped(lambda: self._measure_speeds(boundary, largest), stopped)
        return self._result(boundary, comparison, search_seconds, in_evaluation)

    def _measure_speeds(self, boundary: Boundary, largest: int) -> Comparison:
        self._start_near_the_bend(largest)
        self.execution.phase("timing", known=self.known_before_speeds(boundary))
        comparison = self.seats.compare(largest)
        reason = reason_to_log(comparison, self.spec.current_batch_size, shares_cores=self.is_on_cpu)
        self.execution.log(reason or f"compared in {comparison.rounds} rounds")
        return comparison

    def decide(self) -> Try | Found:
        step = next_start(self.so_far)
        return step if isinstance(step, Found) else Try(step, fresh_process=True)

    @property
    def so_far(self) -> SearchSoFar:
        return SearchSoFar(
            self.starts,
            self.searched,
            memory_bytes=0 if self.seen_device is None else self.limit_bytes,
            first=self.spec.start_batch_size or self.spec.current_batch_size,
            maximum=min(self.most_samples or self.spec.max_batch_size, self.spec.max_batch_size),
            # a CPU with memory to spare runs a size beyond the limit to its end
            measures_refused=self.is_on_cpu and 2 * self.ranks * self.limit_bytes <= self.device.capacity_bytes,
            data_end=self.data_end,
            given=self.spec.allowed_sizes,
            has_ranks=self.ranks > 1,
            watched=marked_by_inputs([e.watched for e in self.evidence.values() if e.watched is not None]),
            least_steps=max(self.spec.soak_steps or STEPS, LEAST_STEPS),
        )

    @property
    def ranks(self) -> int:
        """How many processes train at the same time, as far as it was seen."""
        return 1 if self.spec.emulated_ranks else max([1, *(e.world_size for e in self.evidence.values())])

    def found(self, step: Found) -> Boundary:
        """Return the boundary with what its largest size showed. Raises WorkloadFailed where no size made a step."""
        if self.seen_device is None:  # not even batch 1 came as far as a training step
            said = describe_error(self.probes[-1].error_type, self.probes[-1].error_message)
            raise WorkloadFailed(f"the training came to no optimizer step: {said}")
        says = boundary_on_ranks if self.ranks > 1 and not self.so_far.is_varied else boundary_where_starts_differ
        tried = self.searched
        is_ended = len(tried) >= MOST_STARTS
        boundary = boundary_of_most_starts(tried, self.device) if is_ended else says(super().found(step), tried)
        if step.refused is None and step.largest == self.most_samples:
            refusal = next(p.error_message for p in self.probes if p.outcome is Outcome.SIZE_LIMIT)
            boundary = replace(boundary, reason=Reason.SIZE_LIMIT, refusal=refusal)
        if (rule := self.so_far.allowed) is not None:
            boundary = boundary_of_rule(boundary, rule, self.spec.allowed_sizes, self.searched)
        if boundary.largest_batch_size not in self.evidence:
            return boundary
        made = [p.steps for p in self.searched if p.fits and p.batch_size == boundary.largest_batch_size]
        return replace(boundary, soak_steps=max(made))

    @property
    def evaluated(self) -> set[int]:
        return {size for size, each in self.evidence.items() if each.has_evaluated}

    def _start_at_the_reserve(self, boundary: Boundary) -> None:
        self.execution.phase("curve")
        check_a_pass(self.seats, boundary.largest_batch_size or 0)
        for _ in range(1 if self.ranks == 1 else STARTS_AT_RESERVE_OF_RANKS):
            if not (size := self._allowed(self.next_size_at_reserve(boundary))) or size in self.evidence:
                return
            with self._losing_nothing("the size that keeps the reserve"):
                self.probe(size, Purpose.CURVE)

    def probe(self, batch_size: int, purpose: Purpose, *, fresh: bool = False) -> Probe:
        """Start the training; again after an error that is not memory, unless another size had the same, or it hung."""
        failed = [p for p in self.probes if p.outcome is Outcome.ERROR and p.batch_size != batch_size]
        probe = self.probe_once(batch_size, purpose)
        is_known = probe.error_type in UNKNOWN_TO_THE_SCRIPT or any(is_same_error(probe, each) for each in failed)
        if probe.outcome is Outcome.ERROR and not is_known:
            self.execution.log(f"batch {batch_size} failed, and not for memory: it is started again", "warning")
            self.starts.pop()
            probe = self.probe_once(batch_size, Purpose.CONFIRM)
        return probe

    def probe_once(self, batch_size: int, purpose: Purpose) -> Probe:
        """Run one probe as in every sweep; an error that ends the run says what its user needs to find the cause."""
        try:
            return super().probe_once(batch_size, purpose)
        except WorkloadFailed as error:
            cause = describe_failure(self.spec, batch_size, self.last_ended)
            text = str(error).partition(MARK)[0].replace("failed: Exit: ", "failed: ")
            raise WorkloadFailed(f"{text}{cause}") from None
        except CommandUntunable as error:
            raise with_its_cause(error, self.spec, batch_size, self.last_ended) from None

    def record(self, probe: Probe, **content: Any) -> None:
        """Add a probe, and log how long its start took; a timed size had several."""
        super().record(probe, **content)
        if probe.purpose is not Purpose.TIMING:
            what = "its emulated ranks" if self.spec.emulated_ranks else "one start"
            self.execution.log(f"batch {probe.batch_size}: {what}, {probe.wall_seconds:.1f} s")

    def execute(self, batch_size: int, purpose: Purpose) -> Probe:
        so_far = self.so_far
        watching = Watching(
            so_far.steps(batch_size),
            least_steps=so_far.least_steps,
            still_steps=0 if so_far.is_varied else STILL_STEPS,  # then all starts are to be alike
            again=sum(p.batch_size == batch_size for p in self.searched) if so_far.is_varied else 0,
            whole_run=self.spec.whole_run,
            rows_folder=self.rows_folder,
        )
        readings, ended = self.seats.start(batch_size, watching, purpose)
        if any(r.ended == "cut" for r in readings):
            self.execution.log("the script draws a fixed number of batches: its passes are not shortened", "warning")
            readings, ended = self.seats.start(batch_size, watching, purpose)
        if ended.timed_out_after_seconds is not None and self.execution.seconds_left <= 0:
            self.last_words = ended.last_words
            self.execution.log(f"batch {batch_size}: the time budget ended{ended.last_words}", "warning")
            raise TimeIsUp("the time budget is spent")
        self.last_ended = ended
        self._learn(readings)
        if not self.probes and (parts := describe_parts(self.spec, readings, ended)):
            self.execution.log(parts)
        try:
            return self._judge(readings, ended, batch_size)
        except SizeUnclear as unclear:
            other = other_size(unclear, batch_size, self.so_far)
            self.execution.log(f"{unclear.what}; batch {other} is started, too: it may tell how the size is used")
            if unclear.least:
                return self.execute(other, purpose)
            found, how = self.seats.start(other, watching, purpose)
            self.unit = unit_of_two(unclear, {batch_size: readings, other: found})
            self.record(replace(self._judge(found, how, other), purpose=purpose))
            if self.so_far.is_varied:  # too few steps were read
                watching = replace(watching, memory_steps=self.so_far.steps(batch_size))
                readings, ended = self.seats.start(batch_size, watching, purpose)
            return self._judge(readings, ended, batch_size)

    def _judge(self, readings: list[Reading], ended: Ended, batch_size: int) -> Probe:
        short = self.so_far.wants_more_steps & {batch_size}
        evidence = self.evidence[batch_size] = self.judged(readings, ended, batch_size)
        is_still = not self.so_far.is_varied and not any(e.observed.may_take_more for e in self.evidence.values())
        if self.is_on_cpu and self.ranks == 1 and is_still:
            of_steps = [p for p in (*self.probes, evidence.probe) if not is_in_evaluation(p, self.evaluated)]
            peaks = {p.batch_size: p.peak_allocated_bytes for p in of_steps if p.peak_allocated_bytes}
            check_memory_rises(peaks, shows_size=UNSEEN in self.unit.axes)
        if evidence.most_samples is not None:  # it says nothing of memory
            self.most_samples = evidence.most_samples
        else:
            self.starts = [s for s in self.starts if s.batch_size not in short]
            self.starts.append(_start_of(evidence, self.seen_device.limit_bytes if self.seen_device else None))
        if not evidence.probe.fits:
            self.seats.release(batch_size)
        return evidence.probe

    def _allowed(self, size: int | None) -> int | None:
        rule = self.so_far.allowed
        return size if size is None or rule is None else rule.at_most(size)

    def _start_near_the_bend(self, largest: int) -> None:
        """Start today's size, if it should train, and sizes up to where more samples make the training no faster."""
        with self._losing_nothing("a size to compare"):
            if (today := self.spec.current_batch_size) < largest and today not in self.evidence:
                self.probe(today, Purpose.CURVE)
            self._time_whole_starts()
            if isinstance(self.seats.candidates(largest), NotCompared):
                return
            for _ in range(MOST_BETWEEN):
                speeds = start_speeds(self.spec, self.device, self.probes, largest)
                size = self._allowed(size_to_start(speeds, today if today in speeds else None))
                if not size or size in self.evidence:
                    return
                self.probe(size, Purpose.CURVE)
                self._time_whole_starts()

    def _time_whole_starts(self) -> None:
        """Time each size whose whole run ended with the script, by a start of it as it is."""
        for size, probe in decisive_probes(self.probes).items():
            if self.spec.whole_run and probe.fits and not probe.timed_step_seconds:
                self.record(probe_of([self.seats.time(size)]))

    @contextmanager
    def _losing_nothing(self, what: str) -> Iterator[None]:
        """Log why a start after the certificate measured nothing; only memory that does not rise takes that back."""
        try:
            yield
        except (TimeIsUp, WorkloadFailed, CommandUntunable, NoScratch) as error:
            if isinstance(error, CommandUntunable) and error.code == MEMORY_VARIES:
                raise
            self.execution.log(f"{what} was not measured: {error}", "warning")

    def _learn(self, readings: list[Reading]) -> None:
        """Take the device and the versions over from the first training that was seen."""
        trained = next((r for r in readings if r.data["device"]), None)
        if trained is None or self.seen_device is not None:
            return
        self.seen_device = facts_of(self.spec, trained, self.others)
        check_reserve(self.spec.reserve_bytes, self.limit_bytes)
        check_kind(self.spec, self.device)
        self.environment = environment_of(self.spec, trained, self.device, self.started_as)
        self.execution.emit_event("device", device=self.device.to_dict(), environment=self.environment)

    def _result(
        self, boundary: Boundary, comparison: Comparison, search_seconds: float, in_evaluation: int | None
    ) -> TuneResult:
        starts = [p for p in self.probes if p.purpose is not Purpose.TIMING]
        starts += self.seats.timed_starts
        timings = Timings(
            total_seconds=self.execution.seconds,
            search_seconds=search_seconds,
            timing_seconds=comparison.seconds,
            processes=len(starts),
        )
        if self.seen_device is None:
            raise WorkloadFailed(f"the time budget ended before the training had made a step{self.last_words}")
        seen, so_far = self.evidence.get(boundary.largest_batch_size or 0, NOTHING_SEEN), self.so_far
        training = Training(
            micro_batches=seen.micro_batches,
            ranks=seen.world_size,
            rank_peaks_bytes=seen.ranks,
            tokens_per_step=seen.tokens_per_step,
            waiting_for_data_fraction=seen.timing.waiting_fraction,
            starts=tuple((p.batch_size, round(p.wall_seconds, 3)) for p in starts),
            changed_files=self.files.named,
            whole_run=seen.whole_run,
            throughputs=tuple(throughput_of(each) for _, each in sorted(self.evidence.items()) if each.probe.fits),
            protection=self.files.protection,
            unseen=seen.unseen,
            peak_shape=seen.memory.shape if seen.memory else None,
            unit=self.unit,
            observed=replace(
                seen.observed,
                refused_late=refused_late(so_far.watched, boundary),
                refused_in_evaluation=in_evaluation,
                is_varied=so_far.is_varied,
            ),
        ).with_peak(seen.probe)
        return TuneResult(self.answer(training.noted(boundary, self.limit_bytes), comparison, timings), training)


def _start_of(evidence: Evidence, limit_bytes: int | None) -> Start:
    """Return what the search knows of a start: the memory is what grows with the batch, where that is known."""
    probe, memory = evidence.probe, evidence.memory
    if memory is None:
        return Start(probe.batch_size, fits=False)
    rising_bytes = memory.batch_peak_bytes
    if probe.fits:
        rising_bytes = rising_bytes or probe.memory_bytes
    elif (rising_bytes or 0) <= (limit_bytes or 0):
        rising_bytes = None
    return Start(probe.batch_size, probe.fits, rising_bytes, memory.resting_bytes, memory.curve)
