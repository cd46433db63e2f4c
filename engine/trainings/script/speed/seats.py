"""Holds starts between blocks of steps, so that their sizes take turns within seconds.

On a CPU all are held that fit beside each other and read the memory of few steps; on a card, whose whole memory a
search needs, those behind it. A size whose start was not kept, or has ended by itself, is started anew for its block.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial

from ....errors import CommandUntunable
from ....facts.intervals import ENOUGH_ROUNDS
from ....facts.not_compared import NotCompared
from ....facts.result import DeviceFacts, Outcome, Probe, Purpose
from ....machine.watch import MachineWatch, tree_seconds, usable_cores
from ....race.speed.comparison import Comparison, SpeedComparison, TimedBlock
from ....race.speed.rounds import Candidates
from ....race.speed.selection import SELECTION_ROUNDS
from ...sweep import Sweep
from ..judge.batch_size import ONE_ROW, Unit
from ..judge.evidence import Evidence, WatchedStart
from ..judge.timed_steps import BLOCK_SECONDS, LEAST_STEPS, TIMED_SECONDS, Timing, samples_of_a_step
from ..notes.file_changes import WrittenFiles
from ..notes.progress import Ended
from ..notes.reading import Reading
from ..sizes.next_start import DataEnd, seconds_of_a_start
from ..spec import FUNCTION, FunctionSpec, TuneSpec
from ..start.held import HeldStarts, is_room
from ..start.launch import Begin, OnTick, Started, Watching, start, start_ranks
from ..start.warm_server_handle import is_warm
from .to_compare import MOST_SECONDS, block_seconds, method_of, sizes_to_compare

OF_SEARCH = (Purpose.SEARCH, Purpose.CONFIRM)
ALIVE_SECONDS = 5.0
MOST_STEPS_READ = 20
"""A CPU's start that read the memory of more steps is not held: it trains on in a heap whose end the C library keeps.

Alone, a training of quick steps gives that end back and asks for it again in each step, and is up to twice as slow.
"""


@dataclass(kw_only=True)
class SweepWithSeats(Sweep):
    """A sweep whose probes are starts of a training, which may be held."""

    spec: TuneSpec | FunctionSpec
    begin: Begin
    files: WrittenFiles
    unit: Unit = ONE_ROW
    evidence: dict[int, Evidence] = field(default_factory=dict)
    """What each size showed when its memory was measured."""
    seen_device: DeviceFacts | None = None

    def __post_init__(self) -> None:
        self.seats = Seats(self)

    @property
    def device(self) -> DeviceFacts:
        assert self.seen_device is not None
        return self.seen_device

    @property
    def is_on_cpu(self) -> bool:
        return self.seen_device is not None and self.seen_device.kind == "cpu"

    @property
    def data_end(self) -> DataEnd | None:
        """Where the data ends; None where it is not known, or a step's micro-batches follow the size."""
        seen = {(each.rows_of_a_pass, each.micro_batches) for each in self.evidence.values() if each.probe.fits}
        rows, micro_batches = seen.pop() if len(seen) == 1 else (None, 0)
        return DataEnd(rows, micro_batches) if rows and micro_batches else None

    def judged(self, readings: list[Reading], ended: Ended, batch_size: int) -> Evidence:
        trained = [p.batch_size for p in self.probes if p.outcome in (Outcome.FITS, Outcome.OUT_OF_MEMORY)]
        return WatchedStart(
            readings,
            ended,
            batch_size,
            limit_bytes=self.device.limit_bytes if self.is_on_cpu else None,
            batch=FUNCTION if self.spec.catalogue else self.spec.batch,  # neither has a whole run
            honoured={size for size in trained if self.evidence[size].batch_axis == 0},
            data_end=self.data_end,
            emulated=[each.rank for each in self.spec.emulated_ranks],
            unit=self.unit,
        ).evidence()

    def seconds_of_a_start(self, batch_size: int) -> float:
        end, earlier = self.data_end, [p.wall_seconds for p in self.probes]
        is_fed = end is None or batch_size <= end.largest
        return seconds_of_a_start(earlier, self.execution.seconds_left, is_fed=is_fed)

    def say_alive(self, batch_size: int, purpose: Purpose, seen: str | None) -> None:
        if seen is not None:
            self.execution.log(f"batch {batch_size}: {seen}")
        elif self.execution.seconds_silent > ALIVE_SECONDS:
            self.execution.emit_event("progress", batch_size=batch_size, purpose=purpose, stage="memory", step=0)


class Seats(HeldStarts[int]):
    """The starts that are held, by size."""

    def __init__(self, sweep: SweepWithSeats) -> None:
        super().__init__(sweep.files)
        self.sweep = sweep
        self.timed_starts: list[Probe] = []
        self.newest_timed: dict[int, Evidence] = {}
        """What the newest blocks showed: steps whose memory is read, as in the search, take another time."""
        self.has_waited = False
        """Whether a start waited for its turn, whether or not it was then held."""
        self.are_forks = is_warm(sweep.spec)  # of a server, one at a time: as blocks of one process, they are alike
        self.may_hold = self.may_hold and sweep.spec.compare_speed and not self.are_forks

    def seconds_of_block(self, batch_size: int) -> float:
        """Return how long the next block of a size is expected to take."""
        known = self._known(batch_size)
        step_seconds = known.probe.step_seconds
        if batch_size not in self.held or step_seconds is None:
            return known.probe.wall_seconds
        return block_seconds(step_seconds, known.timing.settling_steps)

    def candidates(self, largest: int) -> Candidates | NotCompared:
        """Return the sizes to compare, or why there are none."""
        cores, sweep = len(usable_cores()), self.sweep
        are_held = bool(self.held) or (self.may_hold and self.has_waited and sweep.is_on_cpu)
        return sizes_to_compare(sweep.spec, sweep.device, sweep.probes, largest, cores=cores, are_held=are_held)

    def compare(self, largest: int) -> Comparison:
        """Compare sizes by blocks in turns, as `engine.race.speed.selection` decides."""
        candidates, execution = self.candidates(largest), self.sweep.execution
        if isinstance(candidates, NotCompared):
            return Comparison(why=candidates)
        expected_seconds = self.seconds_of_comparing(candidates)
        self.sweep.say_what_comparing_takes(expected_seconds)
        comparison = SpeedComparison(
            candidates=candidates,
            run_block=lambda size, _: self._block(size),
            emit=lambda content: execution.emit_event("timing", **content),
            expected_seconds=expected_seconds,
            most_seconds=min(MOST_SECONDS, execution.seconds_left),
        )
        found = comparison.run()
        for probe in comparison.probes(found):
            self.sweep.record(probe)
        return replace(found, method=method_of(found.speed_rounds))

    def _block(self, batch_size: int) -> TimedBlock:
        """Time a block; a start that gives no speed is left out of the comparison."""
        try:
            block = self.time(batch_size)
        except CommandUntunable as error:
            block = TimedBlock(batch_size, Outcome.ERROR, error_message=str(error))
        if block.outcome is not Outcome.FITS:
            self.sweep.execution.log(f"batch {batch_size} could not be timed: {block.error_message}", "warning")
        return block

    def seconds_of_comparing(self, candidates: Candidates) -> float:
        """Return how long comparing these sizes is expected to take."""
        sizes = sorted({*candidates.sizes, candidates.current or candidates.sizes[0]})
        count = SELECTION_ROUNDS * len(candidates.sizes) + 2 * ENOUGH_ROUNDS
        each = [self.seconds_of_block(size) for size in sizes]
        held = [seconds for size, seconds in zip(sizes, each, strict=True) if size in self.held]
        begun = sum(each) - sum(held) if self.may_hold else 0.0
        return begun + count * max((held if begun else each) or [BLOCK_SECONDS])

    def time(self, batch_size: int) -> TimedBlock:
        """Time a block of a size, in its held start or a new start. Raises TimeIsUp and CommandUntunable."""
        self.sweep.execution.check_deadline()
        known = self._known(batch_size)
        began, watch = time.monotonic(), MachineWatch(own_seconds=tree_seconds)
        seconds, say = self.sweep.seconds_of_a_start(batch_size), self._saying(batch_size, Purpose.TIMING)
        if (readings := self.turn(batch_size, known.steps_to_time(BLOCK_SECONDS), seconds, say)) is not None:
            timed = self.newest_timed[batch_size] = timed_again(known, readings[0], self.sweep.unit)
            return _block_of(timed, watch, time.monotonic() - began, was_held=True)
        has_further_blocks = self.are_forks or (self.may_hold and self.has_waited)
        seconds_to_time = BLOCK_SECONDS if has_further_blocks else TIMED_SECONDS
        watching = Watching(LEAST_STEPS, timed_steps=known.steps_to_time(seconds_to_time))
        readings, ended = self.start(batch_size, watching, Purpose.TIMING)
        self.sweep.execution.check_deadline()
        evidence = self.sweep.judged(readings, ended, batch_size)
        self.timed_starts.append(evidence.probe)
        if evidence.probe.fits:
            self.newest_timed[batch_size] = evidence
        return _block_of(evidence, watch, evidence.probe.wall_seconds, was_held=self.are_forks)

    def _known(self, batch_size: int) -> Evidence:
        return self.newest_timed.get(batch_size, self.sweep.evidence[batch_size])

    def start(self, batch_size: int, watching: Watching, purpose: Purpose) -> tuple[list[Reading], Ended]:
        """Start a size; it is held where it then waits for its next turn, and may be of use."""
        once = partial(self._start, batch_size, purpose)
        return self.started(batch_size, watching, once, is_room=partial(self._is_room_for, batch_size))

    def _start(self, batch_size: int, purpose: Purpose, watching: Watching) -> tuple[list[Reading], Ended]:
        def hold(started: Started, readings: list[Reading]) -> bool:
            self.has_waited = True
            is_of_use = purpose not in OF_SEARCH or not any(map(_trains_otherwise_than_alone, readings))
            if is_of_use:
                self.held[batch_size] = started
            return is_of_use

        once = partial(start, self.sweep.begin, batch_size, on_tick=self._saying(batch_size, purpose), hold=hold)
        seconds = self.sweep.seconds_of_a_start(batch_size)
        readings, ended = start_ranks(once, watching, self.sweep.spec.emulated_ranks, seconds=seconds)
        self.sweep.files.take(ended.changes)
        return readings, ended

    def _saying(self, batch_size: int, purpose: Purpose) -> OnTick:
        return partial(self.sweep.say_alive, batch_size, purpose)

    def _is_room_for(self, batch_size: int) -> bool:
        if (device := self.sweep.seen_device) is None:
            return False
        own_bytes = self._taken_bytes(batch_size) or 2 * (device.limit_bytes or device.capacity_bytes)
        return is_room(device, own_bytes, sum(map(self._taken_bytes, self.held)))

    def _taken_bytes(self, batch_size: int) -> int:
        known = self.sweep.evidence.get(batch_size)
        return 0 if known is None else known.probe.device_used_bytes or known.probe.peak_allocated_bytes or 0


def _trains_otherwise_than_alone(searched: Reading) -> bool:
    """Whether a start of the search is none to time: on a card it keeps what others need, on a CPU see above."""
    return bool(searched.card) or max(searched.read_steps().values(), default=0) > MOST_STEPS_READ


def _block_of(evidence: Evidence, watch: MachineWatch, seconds: float, *, was_held: bool) -> TimedBlock:
    """Return the timed block of a start. A start without a speed counts as one that did not fit, for any reason."""
    probe = evidence.probe
    is_timed = probe.fits and probe.samples_per_second is not None
    return TimedBlock(
        probe.batch_size,
        Outcome.FITS if is_timed else Outcome.ERROR,
        probe.timed_step_seconds,
        seconds,
        {"others_cores": watch.read()["others_cores"]},
        error_message=probe.error_message or "its data ended too early",
        micro_batches=max(round(samples_of_a_step(probe) / probe.batch_size), 1),
        was_held=was_held,
        of_a_script=True,
        computing_fraction=evidence.timing.computing_fraction,
        collecting_fraction=evidence.timing.collecting_fraction,
    )


def timed_again(evidence: Evidence, reading: Reading, unit: Unit) -> Evidence:
    """Return the evidence of a start with the steps of another block of it, as it was held."""
    probe, micro_batches, counts_all = evidence.probe, evidence.micro_batches, evidence.timing.counts_all
    timing = Timing.of([reading], probe.batch_size, micro_batches, unit, counts_all=counts_all)
    probe = replace(
        probe,
        step_seconds=timing.typical_seconds,
        timed_step_seconds=timing.step_seconds,
        samples_per_second=timing.per_second(probe.batch_size * micro_batches),
    )
    return replace(evidence, probe=probe, timing=timing)
