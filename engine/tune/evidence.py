"""PURE: from the readings of one start to its probe. Raises CommandUntunable where they prove nothing.

hook_not_loaded       no Python process with torch was seen: nothing could be watched
batch_size_not_set    the hook was to set the batch size and found nowhere to set it
batch_size_ignored    the training was given batches of another size than it was started with
ranks_disagree        the processes of one training did not consume the same, or one ended before the others
gpus_differ           the ranks of one training have GPUs of different kinds
several_trainings     processes that know nothing of each other, or threads, train at the same time
ended_early           the command ended in order before enough optimizer steps
no_process_group      ranks were to be emulated, and the training never joined a process group
cannot_emulate        its ranks need what only real ones have
no_memory_seen        steps were counted, but nothing of their memory
memory_varies         a smaller batch took clearly more memory than a larger one: no boundary is to be trusted
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import CommandUntunable
from ..measurement.oom import classify, is_of_a_library
from ..results.host_memory import KILLED_TYPE
from ..results.result import DATA_EXHAUSTED, Outcome, Probe
from ..results.stats import is_steady
from ..search.stillness import Watched
from ..text.masking import masked_text
from ..text.own_words import SAID, describe_error
from ..text.units import describe_over
from .data_end import DataEnd
from .emulated.evidence import OWN_RANKS, check_emulated, without_speed
from .file_changes import FileChanges
from .hook.memorymark_seen import NO_BATCH
from .observed import Observed, is_much
from .reading import Reading, Step, check_same_gpu
from .replay import Memory
from .script_error import TIMEOUT
from .seen import KEPT_OUT, LastSeen
from .spec import FUNCTION
from .speed.timed_steps import (
    TIMED_SECONDS,
    Loader,
    Timing,
    computing_fraction,
    full_seconds,
    steps_to_time,
    timed_pairs,
)
from .varied import differences_of
from .wanted_size import ONE_ROW, Unit, check_undivided, end_of_data, is_consumed_alike
from .whole_run import Unseen

SETTERS = {"dataloader": "DataLoader", "hf": "TrainingArguments", "steps": "memorymark.steps"}
TOGETHER = "train side by side: what they hold together is not known"


@dataclass(frozen=True, slots=True)
class Ended:
    """How one start ended: of the whole command, where its processes were not ended by MemoryMark."""

    exit_status: int | None = None
    timed_out_after_seconds: float | None = None
    kernel_killed: bool = False
    last_lines: str = ""
    last_output: tuple[str, ...] = ()
    """The last lines of its output, more of them, for an error that ends the run."""
    log: Path | None = None
    """Its whole output, where it failed."""
    seen: LastSeen | None = None
    began: float = 0.0
    """When it was started: a time of `time.monotonic`, as the hook's marks are."""
    wall_seconds: float = 0.0
    changes: FileChanges = FileChanges()
    """What it did to files before that was undone."""

    @property
    def has_evaluated(self) -> bool:
        return self.seen is not None and self.seen.has_evaluated

    @property
    def last_words(self) -> str:
        return f"; seen last: {self.seen.text}{self.last_lines}" if self.seen else self.last_lines


@dataclass(frozen=True, slots=True)
class Evidence:
    """The probe of one start, and what else the readings tell of it."""

    probe: Probe
    resting_bytes: int | None = None
    batch_peak_bytes: int | None = None
    micro_batches: int = 0
    batch_axis: int = 0
    """The dimension of the inputs that was the batch size."""
    ranks: tuple[int, ...] = ()
    """The peak of each rank in bytes, rank 0 first; of those that were emulated, where they were."""
    world_size: int = 0
    """How many ranks train together."""
    tokens_per_step: int | None = None
    tokens_per_second: float | None = None
    waiting_fraction: float | None = None
    """The share of its timed steps that the slowest-fed rank waited for a DataLoader; None where none was seen."""
    computing_fraction: float | None = None
    """As of a `SpeedBlock`, of its timed steps."""
    settling_steps: int = 0
    """Steps to be timed beyond those that count, where it waits for the bursts of its loader's workers."""
    is_settled: bool = False
    """Whether its timed steps are means of whole bursts, without those that were fed with batches made ahead."""
    peak_shape: tuple[int, ...] = ()
    """The first two dimensions of what the model was given at the peak of the worst rank."""
    whole_run: Mapping[str, Any] | None = None
    """What a whole run saw of the data and of the script's other parts, in rank 0."""
    unseen: Unseen | None = None
    """What a start that is no whole run shows of the rest of the training."""
    observed: Observed = Observed()
    watched: Watched | None = None
    """Whether its memory was still in the steps that were read; None where none was."""
    most_samples: int | None = None
    """The largest batch that the data gave, where it gave fewer than were wanted."""
    curve: tuple[int, ...] = ()
    """What the worst rank held after each change within one step."""
    has_evaluated: bool = False
    """Whether a module ran in evaluation mode while the memory was read: an evaluation, or a network not trained."""
    counts_all: bool = False
    """Whether steps of each size were timed, as the training has no size that most of them have."""
    rows_of_a_pass: int | None = None
    """The rows that one pass over the data has in each process; None where the loaders do not say."""

    def steps_to_time(self, seconds: float = TIMED_SECONDS) -> int:
        return steps_to_time(self.probe.step_seconds, seconds) + self.settling_steps


NO_ALLOCATION = (
    "no allocation was seen: the training does not run on this device, or the script runs torch.profiler itself, which "
    "ends the one that reads the memory of a CPU: leave it out"
)


def evidence_of(
    readings: Sequence[Reading],
    ended: Ended,
    batch_size: int,
    *,
    limit_bytes: int | None,
    batch: str,
    honoured: Collection[int],
    data_end: DataEnd | None = None,
    emulated: Collection[int] = (),
    unit: Unit = ONE_ROW,
    takes_any_size: bool = False,
    counts_all: bool | None = None,
) -> Evidence:
    """Return what one start with `batch_size` shows; where it `takes_any_size`, whatever its steps consumed counts.

    `counts_all` says whether steps of each size are timed then, as an earlier start decided it; None: this one decides.

    `limit_bytes` is the budget of a CPU; a card's is in force in the command itself. `honoured` are the other sizes
    that the command was seen to train with, as the first dimension of its inputs: they tell a data set that is too
    small from a size that is ignored. Another dimension may equal a size by chance. `data_end` is what earlier starts
    showed of the data. `emulated` are the ranks that the start stood in for, where it was not given all of them.
    """
    check_emulated(readings, emulated)
    if (threads := max((r.trainings for r in readings), default=1)) > 1:
        raise CommandUntunable("several_trainings", f"{threads} threads of one process {TOGETHER}")
    too_large = data_end is not None and batch_size > data_end.largest
    if (refusal := _refused(readings, ended, batch_size, unit)) is not None:
        if too_large and data_end and refusal.outcome is Outcome.ERROR:
            message = f"{data_end.describe(batch_size)}; {describe_error(refusal.error_type, refusal.error_message)}"
            return Evidence(_out_of_data(batch_size, message, ended))
        if honoured and refusal.error_type == NO_BATCH:
            return Evidence(_out_of_data(batch_size, refusal.error_message or "", ended))
        return Evidence(refusal, has_evaluated=ended.has_evaluated)
    trained = sorted((r for r in readings if r.is_done), key=lambda r: r.rank)
    if not trained:
        untunable = _unseen(readings, ended)
        if readings and data_end and batch_size > min(data_end.walls, default=0):
            return Evidence(_out_of_data(batch_size, data_end.describe(batch_size), ended))
        if readings and honoured:
            return Evidence(_ended_early(readings, batch_size, ended, str(untunable), has_rows=data_end is not None))
        raise untunable
    world_size, finished = trained[0].world_size, len({r.rank for r in trained})
    if finished < (len(emulated) or world_size):
        raise CommandUntunable("ranks_disagree", f"{finished} of {world_size} ranks made enough optimizer steps")
    alone = max(len(trained) - max(len(emulated) - 1, 0), ended.seen.training if ended.seen else 0)
    if emulated and alone > 1:
        raise CommandUntunable("cannot_emulate", OWN_RANKS)
    if world_size == 1 and alone > 1:
        raise CommandUntunable("several_trainings", f"{alone} processes without a process group {TOGETHER}")
    if batch in SETTERS and not any(SETTERS[batch] in r.set_by() for r in readings):
        raise CommandUntunable("batch_size_not_set", _why_not_set(batch, readings))
    check_same_gpu(trained)
    steps = [r.steps() for r in trained]
    counted = [unit.micro_batches(each, batch_size) for each in steps]
    if takes_any_size and None in counted:
        counted = [(0, 1)] * len(steps)
    if None in counted:
        if too_large and data_end:
            return Evidence(_out_of_data(batch_size, data_end.describe(batch_size), ended))
        if not honoured and unit is ONE_ROW:
            check_undivided(trained, steps, batch_size)
        message, largest = end_of_data(trained, steps, batch_size, honoured, unit, has_evaluated=ended.has_evaluated)
        return Evidence(_out_of_data(batch_size, message, ended), most_samples=largest)
    found = [each for each in counted if each is not None]
    axis, micro_batches = found[0]
    if len(set(found)) > 1:
        each = [count for _, count in found]
        raise CommandUntunable("ranks_disagree", f"the ranks consumed {each} micro-batches of {batch_size} a step")
    memories = [r.memory() for r in trained]
    if any(m is None for m in memories):
        raise CommandUntunable("no_memory_seen", NO_ALLOCATION)
    pairs, full = timed_pairs(steps[0]), full_seconds(steps[0], batch_size, micro_batches, unit)
    if counts_all is None:
        counts_all = takes_any_size and 2 * len(full) <= len(pairs)
    step_seconds = [b.ended_at - a.ended_at for a, b in pairs] if counts_all else full
    known = [m for m in memories if m]
    evidence = _measured(batch_size, trained, steps, step_seconds, known, micro_batches, limit_bytes, ended, unit)
    differences = differences_of(trained, steps, known[0], unit, batch_size, axis, micro_batches)
    whole_run = trained[0].whole_run
    is_cut = whole_run is not None and whole_run["is_evaluation_cut"]
    only_read_bytes, peak_bytes = max(r.only_read_bytes for r in trained), max(m.peak_bytes for m in known)
    observed = replace(
        differences.observed,
        growth_bytes=max(m.growth_bytes for m in known),
        kept_by_evaluation_bytes=max(m.kept_by_evaluation_bytes for m in known) if is_cut else 0,
        idle_optimizers=max(r.idle_optimizers for r in trained),
        refused_allocations=max(r.refused_allocations for r in trained),
        only_read_bytes=only_read_bytes if is_much(only_read_bytes, peak_bytes) else 0,
    )
    rows = {r.rows_of_a_pass for r in trained}
    has_batches_as_rows = batch_size > 1 and all(drawn == 1 for each in steps for step in each for drawn in step.drawn)
    is_drawn = unit is ONE_ROW or all(drawn == batch_size for each in steps for step in each for drawn in step.drawn)
    rows_of_a_pass = rows.pop() if len(rows) == 1 and is_drawn and not has_batches_as_rows else None
    watched = differences.watched
    if any(is_much(m.others_bytes, m.peak_bytes) for m in known):  # other threads took memory: starts may differ
        watched = replace(watched, is_varied=True)
    evidence = replace(evidence, observed=observed, watched=watched, counts_all=counts_all)
    axis = axis if unit is ONE_ROW else 0  # by chance it is no other dimension
    is_script = whole_run is None and batch != FUNCTION  # a function has no whole run to go on to
    unseen = Unseen(**trained[0].data.get("unseen") or {}) if is_script else None
    evidence = replace(evidence, has_evaluated=any(r.has_evaluated for r in trained))
    found_in_all = replace(evidence, batch_axis=axis, whole_run=whole_run, unseen=unseen, rows_of_a_pass=rows_of_a_pass)
    return without_speed(found_in_all, world_size) if emulated else replace(found_in_all, world_size=world_size)


def _why_not_set(batch: str, readings: Sequence[Reading]) -> str:
    if batch == "dataloader" and any(r.gets_own_batches for r in readings):
        where = "its DataLoader gets batches that are put together by a batch_sampler or by its data set"
        return (
            f"{where}: --batch dataloader has no size to set; write {{batch_size}} in the command, or use --batch env"
        )
    return f"no {SETTERS[batch]}(...) was called: --batch {batch} needs one"


def _measured(
    batch_size: int,
    trained: Sequence[Reading],
    steps: Sequence[Sequence[Step]],
    step_seconds: Sequence[float],
    memories: Sequence[Memory],
    micro_batches: int,
    limit_bytes: int | None,
    ended: Ended,
    unit: Unit,
) -> Evidence:
    worst = max(memories, key=lambda m: m.peak_bytes)
    timing = Timing.of(step_seconds, steps, Loader(*trained[0].data.get("loader", ())), micro_batches)
    samples = batch_size * micro_batches * len(trained)
    over = None
    if limit_bytes is not None and worst.peak_bytes > limit_bytes:
        over = f"out of memory: the peak is {describe_over(worst.peak_bytes, limit_bytes)}"
    probe = Probe(
        batch_size,
        Outcome.OUT_OF_MEMORY if over else Outcome.FITS,
        fresh_process=True,
        steps=sum(not s.is_timed for s in steps[0]),
        peak_allocated_bytes=worst.peak_bytes,
        peak_reserved_bytes=max((m.reserved_bytes for m in memories if m.reserved_bytes is not None), default=None),
        beside_bytes=_beside_bytes(trained),
        device_used_bytes=max((r.card["total_bytes"] - r.card["free_bytes"] for r in trained if r.card), default=None),
        allocator_retries=max((r.card["allocator_retries"] for r in trained if r.card), default=None),
        peak_phase=worst.phase,
        step_seconds=timing.typical_seconds,
        timed_step_seconds=timing.step_seconds,
        timing_is_steady=is_steady(timing.step_seconds) if timing.step_seconds else None,
        samples_per_second=timing.per_second(samples),
        error_type="BudgetExceeded" if over else None,
        error_message=over,
        failed_phase=worst.phase if over else None,
        wall_seconds=ended.wall_seconds,
    )
    full = [step for step in steps[0] if unit.held(step, batch_size) == micro_batches]
    tokens = [sum(t for _, _, t in step.forwards if t) for step in full]
    return Evidence(
        probe,
        resting_bytes=worst.resting_bytes,
        batch_peak_bytes=worst.batch_peak_bytes,
        micro_batches=micro_batches,
        ranks=tuple(m.peak_bytes for m in memories),
        tokens_per_step=max(tokens, default=0) or None,
        tokens_per_second=timing.tokens_per_second,
        waiting_fraction=timing.waiting_fraction,
        computing_fraction=computing_fraction(trained),
        settling_steps=timing.settling_steps,
        is_settled=timing.is_settled,
        peak_shape=worst.shape,
        curve=worst.curve,
    )


def _refused(readings: Sequence[Reading], ended: Ended, batch_size: int, unit: Unit) -> Probe | None:
    failed = sorted((r for r in readings if r.has_failed), key=lambda r: not r.has_trained)
    outcomes = [(_outcome(r), r) for r in failed]
    known = next(((outcome, r) for outcome, r in outcomes if outcome is not None), None)
    told = [r for r in readings if r.refused_allocations and r.was_told_of_refusals]
    swallowed = any(not is_consumed_alike(r.steps(), batch_size, unit) for r in told)
    if known is not None:
        outcome, reading = known
        error_type, message = _error_of(reading)
    elif swallowed:
        outcome, error_type = Outcome.OUT_OF_MEMORY, "OutOfMemoryError"
        message = "the card refused an allocation; the training caught that and went on"
    elif ended.kernel_killed:
        outcome, error_type, message = Outcome.OUT_OF_MEMORY, KILLED_TYPE, "the kernel's out-of-memory killer ended it"
    elif failed:
        outcome, (error_type, message) = Outcome.ERROR, _error_of(failed[0])
    elif ended.timed_out_after_seconds is not None:
        text = f"its steps were not done within {ended.timed_out_after_seconds:.0f} s{ended.last_words}"
        outcome, error_type, message = Outcome.ERROR, TIMEOUT, text
    elif ended.exit_status and not any(r.is_done and r.is_ended_by_itself for r in readings):
        text = f"the command ended with status {ended.exit_status}{ended.last_lines}"
        outcome, error_type, message = Outcome.ERROR, "Exit", text
    else:
        return None
    return replace(_ended_as(outcome, error_type, message, batch_size, ended), beside_bytes=_beside_bytes(readings))


def _beside_bytes(readings: Iterable[Reading]) -> int | None:
    return max((each for r in readings if (each := r.beside_bytes) is not None), default=None)


def _error_of(reading: Reading) -> tuple[str, str]:
    if reading.data["error_type"] == NO_BATCH:
        return NO_BATCH, reading.empty_passes or ""
    message = masked_text(reading.data["error_message"] or "")
    is_own = bool(message) and (_outcome(reading) is None or not is_of_a_library(message))
    return reading.data["error_type"], f"{SAID}{message}" if is_own else message


def _outcome(reading: Reading) -> Outcome | None:
    free, total = reading.card.get("free_bytes"), reading.card.get("total_bytes")
    return classify(reading.data["error_type"], reading.data["error_message"] or "", free_bytes=free, total_bytes=total)


def _unseen(readings: Sequence[Reading], ended: Ended) -> CommandUntunable:
    if not readings and not (ended.seen and ended.seen.has_torch):
        has_python = ended.seen is not None and ended.seen.processes > 0
        why = "Python ran with the hook and did not import it" if has_python else KEPT_OUT
        return CommandUntunable("hook_not_loaded", f"no Python process with torch was seen: {why}{ended.last_lines}")
    most = max((len(r.steps()) for r in readings), default=0)
    empty = next((f"; {r.empty_passes}" for r in readings if r.empty_passes), "")
    what = f"the training ended after {most} optimizer steps, before its memory was known{empty}"
    return CommandUntunable("ended_early", f"{what}{ended.last_words}")


def _ended_early(readings: Sequence[Reading], batch_size: int, ended: Ended, why: str, *, has_rows: bool) -> Probe:
    """Return the probe of a start that ended in order before enough steps, though other sizes trained.

    That is the end of its data, unless it has rows enough, or ended within a step: a script that hides its errors ends
    in order, too.
    """
    has_rows = has_rows and not any(r.empty_passes for r in readings)
    is_hidden = has_rows or any(r.went_forward_last for r in readings)
    return (
        _ended_as(Outcome.ERROR, "Exit", why, batch_size, ended) if is_hidden else _out_of_data(batch_size, why, ended)
    )


def _out_of_data(batch_size: int, message: str, ended: Ended) -> Probe:
    return _ended_as(Outcome.SIZE_LIMIT, DATA_EXHAUSTED, message, batch_size, ended)


def _ended_as(outcome: Outcome, error_type: str, message: str, batch_size: int, ended: Ended) -> Probe:
    return Probe(
        batch_size,
        outcome,
        fresh_process=True,
        error_type=error_type,
        error_message=message,
        wall_seconds=ended.wall_seconds,
    )
