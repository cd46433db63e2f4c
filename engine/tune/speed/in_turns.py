"""Compares sizes by blocks of their starts in turns, as `engine.speed.selection` decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from ...errors import CommandUntunable
from ...execution import Execution
from ...machine.watch import usable_cores
from ...results.not_compared import NotCompared
from ...results.result import DeviceFacts, Outcome, Probe
from ...speed.comparison import Comparison, SpeedComparison, TimedBlock
from ...speed.rounds import Candidates
from ..spec import FunctionSpec, TuneSpec
from .seats import Seats
from .to_compare import MOST_SECONDS, method_of, sizes_to_compare


class Sweep(Protocol):
    """The search whose sizes are compared."""

    spec: TuneSpec | FunctionSpec
    execution: Execution
    probes: list[Probe]
    seats: Seats

    @property
    def device(self) -> DeviceFacts: ...
    def record(self, probe: Probe, **content: Any) -> None: ...
    def say_what_comparing_takes(self, seconds: float) -> None: ...


def compare_speeds(sweep: Sweep, largest: int) -> Comparison:
    candidates = candidates_of(sweep, largest)
    if isinstance(candidates, NotCompared):
        return Comparison(why=candidates)
    expected_seconds = sweep.seats.seconds_of_comparing(candidates)
    sweep.say_what_comparing_takes(expected_seconds)
    comparison = SpeedComparison(
        candidates=candidates,
        run_block=lambda size, _: _block(sweep, size),
        emit=lambda content: sweep.execution.emit_event("timing", **content),
        expected_seconds=expected_seconds,
        most_seconds=min(MOST_SECONDS, sweep.execution.seconds_left),
    )
    found = comparison.run()
    for probe in comparison.probes(found):
        sweep.record(probe)
    return replace(found, method=method_of(found.speed_rounds))


def candidates_of(sweep: Sweep, largest: int) -> Candidates | NotCompared:
    """Return the sizes to compare, or why there are none."""
    cores, are_held = len(usable_cores()), bool(sweep.seats.held)
    return sizes_to_compare(sweep.spec, sweep.device, sweep.probes, largest, cores=cores, are_held=are_held)


def _block(sweep: Sweep, batch_size: int) -> TimedBlock:
    """Time a block; a start that gives no speed is left out of the comparison."""
    try:
        block = sweep.seats.time(batch_size)
    except CommandUntunable as error:
        block = TimedBlock(batch_size, Outcome.ERROR, error_message=str(error))
    if block.outcome is not Outcome.FITS:
        sweep.execution.log(f"batch {batch_size} could not be timed: {block.error_message}", "warning")
    return block
