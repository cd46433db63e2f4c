"""The sweep of a run: probes (a worker's steps in `runner`, starts in `tune.run`), search, and answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from ..describe.does_not_fit import refusing_probe
from ..describe.result import describe_known
from ..errors import TimeIsUp, WorkloadFailed
from ..facts.result import Boundary, DeviceFacts, Outcome, Point, Probe, Purpose, RunResult, Timings
from ..machine.execution import Execution
from ..machine.watch import MachineWatch, tree_seconds, usable_cores
from ..race.speed.comparison import Comparison
from ..race.speed.rounds import BUSY_FRACTION, BUSY_STARTS_FRACTION, describe_load
from ..search.boundary import boundary_cut_short, boundary_of_search, with_current_size_note
from ..search.reserve import edge_size, reserve_of
from ..search.unguided import Found, Try
from ..settings.spec import SearchSpec
from ..text.own_words import describe_error
from ..text.units import format_duration
from .build_result import answer, measured_points


@dataclass(kw_only=True)
class Sweep(ABC):
    """A sweep in progress. A subclass says what to probe next, and how a probe is carried out."""

    what_runs: ClassVar[str]
    spec: SearchSpec
    execution: Execution
    started_as: Mapping[str, Any]
    probes: list[Probe] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    watch: MachineWatch = field(default_factory=partial(MachineWatch, own_seconds=tree_seconds))

    @property
    @abstractmethod
    def device(self) -> DeviceFacts:
        """The device, once a probe or its preparation has shown it."""

    @abstractmethod
    def decide(self) -> Try | Found:
        """Decide by the probes so far which size the search runs next, or what it found."""

    @abstractmethod
    def probe(self, batch_size: int, purpose: Purpose, *, fresh: bool = False) -> Probe:
        """Run a size by `probe_once`, again if need be; in a process that has run nothing else, if `fresh`."""

    @abstractmethod
    def execute(self, batch_size: int, purpose: Purpose) -> Probe:
        """Carry out one probe."""

    @property
    def limit_bytes(self) -> int:
        return self.device.limit_bytes or self.device.capacity_bytes

    @property
    def searched(self) -> list[Probe]:
        """The probes that the search rests on; carried probes of the curve were never meant to bound it."""
        return [p for p in self.probes if p.purpose in (Purpose.SEARCH, Purpose.CONFIRM)]

    def search(self) -> Boundary:
        """Find the largest size that trains, and the next one refused, as far as the time budget allows."""
        try:
            while isinstance(step := self.decide(), Try):
                is_repeat = any(p.batch_size == step.batch_size for p in self.searched)
                self.probe(step.batch_size, Purpose.CONFIRM if is_repeat else Purpose.SEARCH, fresh=step.fresh_process)
        except TimeIsUp:
            return boundary_cut_short(self.searched)
        return self.found(step)

    def found(self, step: Found) -> Boundary:
        return boundary_of_search(step, self.searched, self.device)

    def probe_once(self, batch_size: int, purpose: Purpose) -> Probe:
        """Run and record a probe. Raises TimeIsUp, and WorkloadFailed for errors unless a smaller size trained."""
        self.execution.check_deadline()
        self.execution.emit_event("probe_started", batch_size=batch_size, purpose=purpose)
        probe = replace(self.execute(batch_size, purpose), purpose=purpose)
        self.record(probe)
        if probe.outcome is Outcome.ERROR and not self.has_trained_below(batch_size):
            raise WorkloadFailed(f"{self.what_runs} failed: {describe_error(probe.error_type, probe.error_message)}")
        return probe

    def record(self, probe: Probe, **content: Any) -> None:
        self.probes.append(probe)
        self.execution.emit_event("probe", probe=probe.to_dict(), **content)

    def has_trained_below(self, batch_size: int) -> bool:
        return any(p.fits and p.batch_size < batch_size for p in self.probes)

    def points(self, boundary: Boundary) -> dict[int, Point]:
        return measured_points(self.probes, self.device, boundary.largest_batch_size or 0)

    def reserve_of(self, boundary: Boundary) -> float:
        return reserve_of(self.spec, self.limit_bytes, self.probes, boundary.largest_batch_size or 0)

    def next_size_at_reserve(self, boundary: Boundary) -> int | None:
        """Return the largest size that should just keep the reserve; None if it, or a size near it, was run."""
        size = edge_size(self.points(boundary), self.limit_bytes, self.reserve_of(boundary))
        return None if size in {p.batch_size for p in self.probes} else size

    def known_before_speeds(self, boundary: Boundary) -> str:
        return describe_known(self.answer(boundary, Comparison(), Timings()))

    def say_what_comparing_takes(self, seconds: float) -> None:
        left_out = "--no-compare-speed leaves it out"
        said = f"comparing speeds takes {format_duration(seconds)} or less ({left_out})"
        load = None
        if self.device.kind == "cpu":
            busy_fraction = BUSY_STARTS_FRACTION if self.spec.starts_anew else BUSY_FRACTION
            load = describe_load(self.watch.others_so_far(), len(usable_cores()), busy_fraction)
        self.execution.log(f"{said}; {load}" if load else said, "warning" if load else "info")

    def answer(self, boundary: Boundary, comparison: Comparison, timings: Timings) -> RunResult:
        boundary = with_current_size_note(boundary, self.spec)
        device, environment = self.device, self.environment
        return answer(self.spec, device, boundary, self.probes, comparison, environment=environment, timings=timings)


def size_to_explain(boundary: Boundary, probes: Sequence[Probe], *, is_search: bool) -> int | None:
    """Return the size refused for memory; for a search without such a refusal, the largest that trained."""
    refusal = refusing_probe(probes, boundary.refused_batch_size)
    if refusal is not None and refusal.outcome is Outcome.OUT_OF_MEMORY:
        return refusal.batch_size
    return (boundary.largest_batch_size or None) if is_search else None
