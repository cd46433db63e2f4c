"""PURE: the result of a tuning: what its training consumed is what a model of the catalogue does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any

from ...describe.speed import is_disturbed
from ...facts.result import Boundary, Probe, Reason, RunResult
from ...search.boundary import with_note
from .judge.batch_size import ONE_ROW, Unit
from .judge.differences import Observed
from .judge.evidence import Evidence
from .judge.timed_steps import mean_speed
from .notes.file_changes import Way
from .notes.whole_run import Unseen, describe_peak, describe_whole_run

LOADER_LIMITS_FROM = 0.5
"""Share of a step that is spent waiting for data, from which loading takes longer than all else. Then it is the limit
whether the training overlaps the two or not."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """The mean speed of one size in a start of its own, over all ranks: not to be compared with another start's."""

    batch_size: int
    samples_per_second: float | None
    tokens_per_second: float | None = None
    waiting_fraction: float | None = None
    is_steady: bool | None = None


@dataclass(frozen=True, slots=True)
class Training:
    """What a result of a command says beside the figures of any run: what a step of the largest size consumes.

    `rank_peaks_bytes` has the peak of each rank; the worst one decides. `starts` are the batch sizes in their order
    with the seconds of each; `changed_files` is what they wrote, `protection` how their user's files were kept as they
    were. `peak` says what the peak of the largest size was in, `peak_shape` has the first two dimensions of what the
    model was given then, and `unit` is what a sample of its batch size is. `whole_run` is what a whole run saw of the
    data and the script, `unseen` what else the script showed to come where it was no whole run. `throughputs` are those
    of the sizes that trained. Of an earlier build `peak_shape` and `observed` are None: its sentences alone say them.
    """

    micro_batches: int
    ranks: int
    rank_peaks_bytes: tuple[int, ...]
    tokens_per_step: int | None
    waiting_for_data_fraction: float | None
    starts: tuple[tuple[int, float], ...]
    changed_files: tuple[str, ...]
    peak: str | None = None
    whole_run: Mapping[str, Any] | None = None
    throughputs: tuple[Throughput, ...] = ()
    protection: Way | None = None
    unseen: Unseen | None = None
    peak_shape: tuple[int, ...] | None = None
    unit: Unit = ONE_ROW
    observed: Observed | None = None

    def with_peak(self, largest: Probe | None) -> Training:
        """Return it with what is said of the peak of the largest size."""
        shape = self.peak_shape
        if shape is None and self.peak is not None:  # an earlier build wrote it in the sentence alone
            numbers = re.findall(r"\d[\d,]{0,24}", self.peak.partition(" of a batch of ")[2])
            shape = tuple(int(each.replace(",", "")) for each in numbers[:2])
        if largest is None or shape is None:
            return replace(self, peak=None)
        held_bytes = largest.peak_allocated_bytes or 0
        return replace(self, peak=describe_peak(largest.peak_phase, shape, held_bytes), peak_shape=shape)

    def noted(self, boundary: Boundary, limit_bytes: int) -> Boundary:
        """Return the boundary of a search that ended with what the starts of the largest size showed."""
        largest, whole = boundary.largest_batch_size, self.whole_run
        if not largest or boundary.reason is Reason.TIME_BUDGET:
            return boundary
        seen = None if whole is None else "; ".join(filter(None, (describe_whole_run(whole), self.peak)))
        observed = self.observed or Observed()
        does_grow = observed.does_grow(max(self.rank_peaks_bytes, default=0), self.unseen, self.micro_batches)
        if observed.evaluation_end_bytes > limit_bytes or does_grow and boundary.reason is Reason.OUT_OF_MEMORY:
            boundary = replace(boundary, certified=False, reason=Reason.GROWS)
        said = (self.unit.describe(), seen, *observed.describe(largest, is_whole_run=whole is not None))
        return reduce(with_note, said, boundary)


def throughput_of(evidence: Evidence) -> Throughput:
    probe = evidence.probe
    return Throughput(
        probe.batch_size,
        mean_speed(probe) if probe.timed_step_seconds else None,
        tokens_per_second=evidence.timing.tokens_per_second,
        waiting_fraction=evidence.timing.waiting_fraction,
        is_steady=probe.timing_is_steady,
    )


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
        return self.result.boundary.certified

    @property
    def recommended_batch_size(self) -> int | None:
        """The size that compared speeds recommend; None where they were not compared, or do not say."""
        return self.result.recommended.batch_size if self.result.recommended else None

    def to_dict(self) -> dict[str, Any]:
        return {**self.result.to_dict(), "training": asdict(self.training)}


def stated_throughputs(result: RunResult, training: Training) -> tuple[Throughput, ...]:
    """Return the steady throughputs, which may be divided by each other; none of a disturbed run."""
    is_steady = [each for each in training.throughputs if each.is_steady and each.samples_per_second is not None]
    return () if is_disturbed(result) else tuple(is_steady)


def describe_loader(throughputs: tuple[Throughput, ...], batch_size: int | None, device_kind: str) -> str | None:
    """Say that the loader is the limit, where it is: of this size, or of the largest where it was not timed."""
    waited = {each.batch_size: each.waiting_fraction for each in throughputs if each.waiting_fraction is not None}
    size = batch_size if batch_size in waited else max(waited, default=0)
    if waited.get(size, 0.0) < LOADER_LIMITS_FROM:
        return None
    share = describe_share_waited(waited[size], size, device_kind)
    return f"{share} More loader workers or cheaper preprocessing help more than a larger batch."


def describe_share_waited(waiting_fraction: float, batch_size: int | None, device_kind: str) -> str:
    what = "computation" if device_kind == "cpu" else "GPU"
    with_batch = "" if batch_size is None else f" with batch {batch_size}"
    return (
        f"Your data loader, not your {what}, is the limit: {waiting_fraction * 100:.0f} % of each step"
        f"{with_batch} was spent waiting for data."
    )
