"""PURE: a watched training, with the cause of its death as far as its figures decide it."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

from ...deaths.cause import Death, seen_by_its_process
from ...errors import SpecError
from ...recording.recording import HostSample, Process, Sample, Shape
from ...recording.spec import WatchSpec
from ...text.printable import LENGTH_MOST, is_line
from ..documents.stored import StoredSpec
from ..documents.watched import Watched
from .document import MOST_INTEGER, read_facts
from .impossible import Impossible, refuse, within
from .limits import (
    BATCH_SIZE_MOST,
    LEAST_STEP_SECONDS,
    MOST_OTHER_PROCESSES,
    MOST_PROCESSES,
    ONE_LINE,
    OVERCOMMITTED,
    SLACK_SECONDS,
)
from .parts import MOST_BYTES
from .physics import MOST_PID, impossible_place

MOST_SAMPLES = 1_024
"""As many as the recorder keeps."""
MOST_DIMENSIONS = 64
"""A tensor of torch has no more."""
_STATUSES = (-max(signal.valid_signals()), 2**31 - 1)


def answer_of_watch(document: Mapping[str, Any]) -> Watched:
    """Return the watched training. Raises SpecError and ImpossibleFiguresError.

    What a text shows of a death is a fact: the text stays where the training ran.
    """
    stored = read_facts(Watched, document)
    process, spec = stored.process, WatchSpec.of_document(stored.spec)
    for name in ("samples", "host_samples"):
        if len(getattr(process, name)) > MOST_SAMPLES:
            raise SpecError(f"process.{name}", f"has more than {MOST_SAMPLES:,} members")
    refuse([*impossible_place(stored.device, "auto"), *_impossible(stored), *_impossible_death(process.death)])
    return replace(stored, spec=StoredSpec(spec.to_dict()), process=replace(process, death=_with_cause(process)))


def _with_cause(process: Process) -> Death | None:
    """Return what the figures of a card's message decide; a watched training has no places."""
    if process.death is None:
        return None
    death = replace(process.death, places=())
    return seen_by_its_process(death, process.steps, was_evaluating=process.was_evaluating)


def _impossible(watched: Watched) -> Iterator[Impossible]:
    device, process = watched.device, watched.process
    is_card = device.kind != "cpu"
    most_bytes = device.capacity_bytes if is_card else OVERCOMMITTED * device.capacity_bytes
    if device.limit_bytes is not None:
        yield Impossible("device.limit_bytes", device.limit_bytes, None)
    for name, value, least, most in (
        ("status", watched.status, *_STATUSES),
        ("oom_kills", watched.oom_kills, 0, MOST_INTEGER),
        ("free_bytes", watched.free_bytes, 0, MOST_BYTES),
        ("device_count", watched.device_count, 1, MOST_PROCESSES if is_card else 1),
        ("process.steps", process.steps, 0, MOST_INTEGER),
        ("process.seconds", process.seconds, 0, watched.total_seconds + SLACK_SECONDS),
        ("process.seconds", process.seconds, LEAST_STEP_SECONDS * (process.steps - 1), MOST_INTEGER),
        ("process.batch_size", process.batch_size, 1, BATCH_SIZE_MOST),
        ("process.peak_bytes", process.peak_bytes, 0, most_bytes),
        ("process.refused_allocations", process.refused_allocations, 0, MOST_INTEGER),
        ("process.training_peak_bytes", process.training_peak_bytes, 0, process.peak_bytes or 0),
    ):
        yield from within(name, value, least, most)
    for name, size in asdict(process.shares).items() if process.shares else ():
        yield from within(f"process.shares.{name}", size, 0, most_bytes)
    yield from _impossible_shapes(process)
    yield from _impossible_samples("process.samples", process.samples, process.steps, most_bytes)
    yield from _impossible_samples("process.host_samples", process.host_samples, process.steps, MOST_BYTES)


def _impossible_shapes(process: Process) -> Iterator[Impossible]:
    piled, batches = process.piled_up, process.batches
    yield from _impossible_shape("process.batches.latest", batches.latest)
    yield from _impossible_shape("process.batches.longest_before", batches.longest_before)
    if piled is not None:
        yield from _impossible_shape("process.piled_up.shape", piled.shape or ())
        yield from within("process.piled_up.count", piled.count, 1, MOST_INTEGER)
        yield from within("process.piled_up.bytes", piled.bytes, 0, MOST_BYTES)
        yield from within("process.piled_up.graphs", piled.graphs, 0, MOST_INTEGER)


def _impossible_shape(path: str, shape: Shape) -> Iterator[Impossible]:
    yield from within(f"{path}.length", len(shape), 0, MOST_DIMENSIONS)
    for place, length in enumerate(shape):
        yield from within(f"{path}[{place}]", length, 0, MOST_BYTES)


def _impossible_samples(
    path: str, samples: Sequence[Sample | HostSample], steps: int, most_bytes: int
) -> Iterator[Impossible]:
    for place, (step, _, *sizes) in enumerate(samples):
        yield from within(f"{path}[{place}][0]", step, 1, steps)
        for member, size in enumerate(sizes, start=2):
            yield from within(f"{path}[{place}][{member}]", size, 0, most_bytes)
    for place, (before, after) in enumerate(pairwise(samples), start=1):
        yield from within(f"{path}[{place}][0]", after[0], before[0] + 1, steps)


def _impossible_death(death: Death | None) -> Iterator[Impossible]:
    if death is None:
        return
    if death.line and not is_line(death.line):
        yield Impossible("process.death.line", death.line, ONE_LINE.format(LENGTH_MOST))
    yield from within("process.death.step", death.step, 0, MOST_INTEGER)
    sizes = asdict(death.figures)
    processes = sizes.pop("processes")
    for name, size in sizes.items():
        yield from within(f"process.death.figures.{name}", size, 0, MOST_BYTES)
    yield from within("process.death.figures.processes", len(processes), 0, MOST_OTHER_PROCESSES)
    for number in processes:
        yield from within("process.death.figures.processes", number, 0, MOST_PID)
