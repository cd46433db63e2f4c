"""Holds starts between blocks of steps, so that their sizes take turns within seconds.

A start costs its imports and its data; a block of steps of one that is held costs its steps alone, and blocks that
follow each other so closely see the same machine. So the starts of the search are kept for the comparison of speeds:
on a CPU all that fit beside each other; on a card, whose whole memory a search needs, those behind it. A size whose
start was not kept, or has ended by itself, is started anew for its block.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from ...errors import CommandUntunable
from ...execution import Execution
from ...machine.watch import MachineWatch, tree_seconds, usable_cores
from ...results.intervals import ENOUGH_ROUNDS
from ...results.not_compared import NotCompared
from ...results.result import DeviceFacts, Outcome, Probe, Purpose
from ...speed.comparison import Comparison, SpeedComparison, TimedBlock
from ...speed.rounds import Candidates
from ...speed.selection import SELECTION_ROUNDS
from ..emulated.starts import start_ranks
from ..evidence import Ended, Evidence
from ..file_changes import WrittenFiles
from ..reading import Reading
from ..spec import FunctionSpec, TuneSpec
from ..start.held import HeldStarts, is_room
from ..start.launch import Begin, OnTick, Started, Watching, start
from ..start.warm_server_handle import is_warm
from ..wanted_size import Unit
from .timed_steps import (
    BLOCK_SECONDS,
    LEAST_STEPS,
    TIMED_SECONDS,
    Loader,
    Timing,
    computing_fraction,
    samples_of_a_step,
)
from .to_compare import MOST_SECONDS, block_seconds, method_of, sizes_to_compare

OF_SEARCH = (Purpose.SEARCH, Purpose.CONFIRM)


class Timed(Protocol):
    """The sweep whose starts are held."""

    spec: TuneSpec | FunctionSpec
    execution: Execution
    files: WrittenFiles
    unit: Unit
    probes: list[Probe]
    evidence: dict[int, Evidence]
    """What each size showed when its memory was measured."""
    seen_device: DeviceFacts | None

    @property
    def begin(self) -> Begin: ...
    @property
    def device(self) -> DeviceFacts: ...
    def record(self, probe: Probe, **content: Any) -> None: ...
    def say_what_comparing_takes(self, seconds: float) -> None: ...
    def judged(self, readings: list[Reading], ended: Ended, batch_size: int) -> Evidence:
        """Return what the readings of a new start show."""

    def seconds_of_a_start(self, batch_size: int) -> float: ...
    def say_alive(self, batch_size: int, purpose: Purpose, seen: str | None) -> None: ...


class Seats(HeldStarts[int]):
    """The starts that are held, by size."""

    def __init__(self, sweep: Timed) -> None:
        super().__init__(sweep.files)
        self.sweep = sweep
        self.timed_starts: list[Probe] = []
        self.are_forks = is_warm(sweep.spec)  # of a server, one at a time: as blocks of one process, they are alike
        self.may_hold = self.may_hold and sweep.spec.compare_speed and not self.are_forks

    def seconds_of_block(self, batch_size: int) -> float:
        """Return how long the next block of a size is expected to take."""
        known = self.sweep.evidence[batch_size]
        step_seconds = known.probe.step_seconds
        if batch_size not in self.held or step_seconds is None:
            return known.probe.wall_seconds
        return block_seconds(step_seconds, known.timing.settling_steps)

    def candidates(self, largest: int) -> Candidates | NotCompared:
        """Return the sizes to compare, or why there are none."""
        cores, are_held, sweep = len(usable_cores()), bool(self.held), self.sweep
        return sizes_to_compare(sweep.spec, sweep.device, sweep.probes, largest, cores=cores, are_held=are_held)

    def compare(self, largest: int) -> Comparison:
        """Compare sizes by blocks in turns, as `engine.speed.selection` decides."""
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
        """Time a block of a size: in its start that is held, or in a new one. Raises TimeIsUp and CommandUntunable."""
        self.sweep.execution.check_deadline()
        known, began, watch = self.sweep.evidence[batch_size], time.monotonic(), MachineWatch(own_seconds=tree_seconds)
        seconds, say = self.sweep.seconds_of_a_start(batch_size), self._saying(batch_size, Purpose.TIMING)
        if (readings := self.turn(batch_size, known.steps_to_time(BLOCK_SECONDS), seconds, say)) is not None:
            timed = timed_again(known, readings[0], self.sweep.unit)
            return _block_of(timed, watch, time.monotonic() - began, was_held=True)
        block_seconds = BLOCK_SECONDS if self.are_forks else TIMED_SECONDS
        watching = Watching(LEAST_STEPS, timed_steps=known.steps_to_time(block_seconds))
        readings, ended = self.start(batch_size, watching, Purpose.TIMING)
        self.sweep.execution.check_deadline()
        evidence = self.sweep.judged(readings, ended, batch_size)
        self.timed_starts.append(evidence.probe)
        return _block_of(evidence, watch, evidence.probe.wall_seconds, was_held=self.are_forks)

    def start(self, batch_size: int, watching: Watching, purpose: Purpose) -> tuple[list[Reading], Ended]:
        """Start a size; it is held where it then waits for its next turn, and may be of use."""
        once = partial(self._start, batch_size, purpose)
        return self.started(batch_size, watching, once, is_room=partial(self._is_room_for, batch_size))

    def _start(self, batch_size: int, purpose: Purpose, watching: Watching) -> tuple[list[Reading], Ended]:
        def hold(started: Started, readings: list[Reading]) -> bool:
            if purpose in OF_SEARCH and any(each.card for each in readings):
                return False
            self.held[batch_size] = started
            return True

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


def _block_of(evidence: Evidence, watch: MachineWatch, seconds: float, *, was_held: bool) -> TimedBlock:
    """Return the block that a start timed. One that gave no speed did not fit, whatever kept it from that."""
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
        computing_fraction=evidence.computing_fraction,
    )


def timed_again(evidence: Evidence, reading: Reading, unit: Unit) -> Evidence:
    """Return the evidence of a start with the steps of another block of it, as it was held."""
    probe, micro_batches, counts_all = evidence.probe, evidence.micro_batches, evidence.timing.counts_all
    loader = Loader(*reading.data.get("loader", ()))
    timing = Timing.of([reading.steps()], loader, probe.batch_size, micro_batches, unit, counts_all=counts_all)
    probe = replace(
        probe,
        step_seconds=timing.typical_seconds,
        timed_step_seconds=timing.step_seconds,
        samples_per_second=timing.per_second(probe.batch_size * micro_batches),
    )
    return replace(evidence, probe=probe, timing=timing, computing_fraction=computing_fraction([reading]))
