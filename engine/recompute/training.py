"""PURE: checks what a tuned command claims to have consumed against its starts.

Tokens, waiting for data and the facts of a whole run were measured within the starts, and are in no probe.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..results.result import Purpose
from ..tune.turns import mean_speed
from .contradiction import Contradiction, differences
from .document import Claims


def untrue_training(claims: Claims) -> Iterator[Contradiction]:
    """Yield the figures of `training` that differ from those of the starts."""
    training = claims.training
    if training is None:
        return
    starts = [p for p in claims.probes if p.purpose is not Purpose.TIMING]
    if len(training.starts) != claims.timings.processes or len(training.starts) < len(starts):
        yield Contradiction("timings.processes", claims.timings.processes, len(training.starts))
    for number, (probe, start) in enumerate(zip(starts, training.starts, strict=False)):
        seconds = [probe.batch_size, round(probe.wall_seconds, 3)]
        yield from differences(f"training.starts[{number}]", list(start), seconds, may_claim_less=False)
    last = {p.batch_size: p for p in starts}
    peaks = training.rank_peaks_bytes
    if len(peaks) != training.ranks:
        yield Contradiction("training.ranks", training.ranks, len(peaks))
    largest = last.get(claims.boundary.largest_batch_size or 0)  # where none is known, nothing may be claimed
    peak = None if largest is None else largest.peak_allocated_bytes
    if peaks and max(peaks) != peak:
        yield Contradiction("training.rank_peaks_bytes", max(peaks), peak)
    for number, each in enumerate(training.throughputs):
        if not 0 <= (each.waiting_fraction or 0.0) <= 1:
            yield Contradiction(f"training.throughputs[{number}].waiting_fraction", each.waiting_fraction, [0, 1])
        timed = last.get(each.batch_size)
        speed = mean_speed(timed) if timed is not None and timed.timed_step_seconds else None
        path = f"training.throughputs[{number}].samples_per_second"
        if each.samples_per_second is not None and speed is None:
            yield Contradiction(path, each.samples_per_second, None)
        yield from differences(path, each.samples_per_second, speed)
