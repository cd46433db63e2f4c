"""PURE: finds what a tuned command cannot have consumed, by its starts; tokens and waiting are in no probe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...facts.result import Boundary
from ...search.allowed_sizes import BUDGETS
from ...text.printable import is_line
from ...trainings.script.judge.timed_steps import mean_speed
from ...trainings.script.notes.file_changes import MOST_FILES, MOST_PATH
from ...trainings.script.result import Training
from .impossible import Impossible, is_same, within
from .limits import MOST_RANKS, MOST_TOKENS, ONE_LINE
from .size_facts import SizeFacts

MOST_SHOWN = 20


def impossible_training(
    facts: SizeFacts, training: Training, boundary: Boundary, catalogue: Mapping[str, Any] | None
) -> Iterator[Impossible]:
    """Yield figures of `training` that contradict its starts, or the settings of `catalogue`, None for own scripts."""
    starts = facts.untimed
    blocks = sum(len(each.blocks) for each in facts.stored.speed_rounds)
    # those that time blocks are last; of a whole run each size has one more, and one start may watch a pass
    is_count = len(starts) <= len(training.starts) <= 2 * len(starts) + blocks + 1
    if len(training.starts) != facts.stored.timings.processes or not is_count:
        yield Impossible("timings.processes", facts.stored.timings.processes, len(training.starts))
    for number, (probe, start) in enumerate(zip(starts, training.starts, strict=False)):
        seconds = [probe.batch_size, round(probe.wall_seconds, 3)]
        if not is_same(list(start), seconds):
            yield Impossible(f"training.starts[{number}]", list(start), seconds)
    last = {p.batch_size: p for p in starts}
    peaks, emulated = training.rank_peaks_bytes, facts.spec.emulated_ranks
    if emulated:
        yield from _impossible_emulation(facts, boundary, training, len(emulated), emulated[0].size)
    elif len(peaks) != training.ranks or training.ranks > MOST_RANKS:
        yield Impossible("training.ranks", training.ranks, len(peaks))
    else:
        yield from _impossible_ranks(boundary, training, catalogue)
    largest = last.get(boundary.largest_batch_size or 0)  # where none is known, nothing may be claimed
    peak = None if largest is None else largest.peak_allocated_bytes
    if peaks and max(peaks) != peak:
        yield Impossible("training.rank_peaks_bytes", max(peaks), peak)
    yield from _unlikely_files(training.changed_files)
    for name, value, least, most in (
        ("waiting_for_data_fraction", training.waiting_for_data_fraction, 0, 1),
        ("tokens_per_step", training.tokens_per_step, 1, MOST_TOKENS),
        ("micro_batches", training.micro_batches, 0, MOST_TOKENS),
        ("unit.rows", training.unit.rows, 1, MOST_TOKENS),
        ("unit.constant", training.unit.constant, 0, MOST_TOKENS),
    ):
        yield from within(f"training.{name}", value, least, most)
    if training.unit.budget not in (None, *BUDGETS):
        yield Impossible("training.unit.budget", training.unit.budget, list(BUDGETS))
    trained = [size for size, probe in last.items() if probe.fits]
    timed_once = {each.batch_size for each in training.throughputs}
    if len(timed_once) < len(training.throughputs) or not timed_once <= {*trained}:
        sizes = [each.batch_size for each in training.throughputs[:MOST_SHOWN]]
        yield Impossible("training.throughputs", sizes, f"at most one of each size that trained: {sorted(trained)}")
        return
    for number, each in enumerate(training.throughputs):
        # short steps, as at the end of the data, have tokens, and no samples that count
        fastest = MOST_TOKENS if each.samples_per_second is None else each.samples_per_second * MOST_TOKENS
        path = f"training.throughputs[{number}]"
        yield from within(f"{path}.tokens_per_second", each.tokens_per_second, 0, fastest)
        yield from within(f"{path}.waiting_fraction", each.waiting_fraction, 0, 1)
        timed = last.get(each.batch_size)
        speed = mean_speed(timed) if timed is not None and timed.timed_step_seconds else None
        if timed is not None and each.is_steady != timed.timing_is_steady:
            yield Impossible(f"{path}.is_steady", each.is_steady, timed.timing_is_steady)
        if each.samples_per_second is not None and (speed is None or not is_same(each.samples_per_second, speed)):
            yield Impossible(f"{path}.samples_per_second", each.samples_per_second, speed)


def _impossible_ranks(
    boundary: Boundary, training: Training, catalogue: Mapping[str, Any] | None
) -> Iterator[Impossible]:
    """Yield where a catalogue model's ranks are not those of its command, which all run on one host."""
    if catalogue is None:
        return
    of_step = (catalogue["ranks"], catalogue.get("accumulation_steps", 1))
    wanted = of_step if boundary.largest_batch_size else (0, 0)
    if (given := (training.ranks, training.micro_batches)) != wanted:
        yield Impossible("training.ranks", list(given), list(wanted))


def _impossible_emulation(
    facts: SizeFacts, boundary: Boundary, training: Training, started: int, size: int
) -> Iterator[Impossible]:
    """Yield what emulated ranks cannot claim: other ranks than were started, and any speed."""
    has_trained = bool(boundary.largest_batch_size)
    wanted = (size, started) if has_trained else (0, 0)
    given = (training.ranks, len(training.rank_peaks_bytes))
    if given != wanted:
        yield Impossible("training.ranks", list(given), list(wanted))
    if min(training.rank_peaks_bytes, default=1) < 1:
        yield Impossible("training.rank_peaks_bytes", min(training.rank_peaks_bytes), "the peak of each rank")
    for number, probe in enumerate(facts.probes):
        if probe.samples_per_second or probe.step_seconds or probe.timed_step_seconds:
            yield Impossible(f"probes[{number}].samples_per_second", probe.samples_per_second, None)


def _unlikely_files(files: Sequence[str]) -> Iterator[Impossible]:
    if len(files) > MOST_FILES:
        yield Impossible("training.changed_files", len(files), f"at most {MOST_FILES}")
    for number, each in enumerate(files[:MOST_FILES]):
        if not is_line(each, MOST_PATH):
            yield Impossible(f"training.changed_files[{number}]", each, ONE_LINE.format(MOST_PATH))
