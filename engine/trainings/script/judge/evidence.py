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

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ....errors import CommandUntunable
from ....facts.host_memory import KILLED_TYPE
from ....facts.result import DATA_EXHAUSTED, Outcome, Probe
from ....facts.stats import is_steady
from ....measurement.oom import classify, is_of_a_library
from ....search.stillness import Watched
from ....text.masking import masked_text
from ....text.own_words import SAID, describe_error
from ....text.printable import printable
from ....text.units import describe_over
from ..hook.memorymark_seen import NO_BATCH, SIGNAL
from ..notes.memory import Memory
from ..notes.progress import KEPT_OUT, Ended
from ..notes.reading import Reading, Step
from ..notes.whole_run import Unseen
from ..sizes.learned_sizes import TIMEOUT
from ..sizes.next_start import DataEnd
from ..spec import FUNCTION
from .batch_size import ONE_ROW, Unit, check_undivided, end_of_data, is_consumed_alike
from .differences import Observed, differences_of, is_much
from .timed_steps import TIMED_SECONDS, UNTIMED, Timing, steps_to_time

SETTERS = {"dataloader": "DataLoader", "hf": "TrainingArguments", "steps": "memorymark.steps"}
TOGETHER = "train side by side: what they hold together is not known"
NOT_EMULATED = "NotEmulated"
"""The type of the error with which the hook refuses what it cannot emulate."""
OWN_RANKS = (
    "the script starts its ranks itself: only a launcher (torchrun, accelerate launch), torch.multiprocessing.spawn "
    "and the ranks of Lightning become one process; start it by torchrun"
)
OTHER_GPU = (
    "the script chooses its GPU by another number than LOCAL_RANK, and there is none of that number here: a rank is "
    "emulated on the first one"
)
Refusals = Iterator[tuple[str, str]]
"""Error codes, each with why a start proves nothing; the first one counts."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The probe of one start, and what else the readings tell of it."""

    probe: Probe
    memory: Memory | None = None
    """That of the worst rank; None where the steps were not done."""
    timing: Timing = UNTIMED
    micro_batches: int = 0
    batch_axis: int = 0
    """The dimension of the inputs that was the batch size."""
    ranks: tuple[int, ...] = ()
    """The peak of each rank in bytes, rank 0 first; of those that were emulated, where they were."""
    world_size: int = 0
    """How many ranks train together."""
    tokens_per_step: int | None = None
    whole_run: Mapping[str, Any] | None = None
    """What a whole run saw of the data and of the script's other parts, in rank 0."""
    unseen: Unseen | None = None
    """What a start that is no whole run shows of the rest of the training."""
    observed: Observed = Observed()
    watched: Watched | None = None
    """Whether its memory was still in the steps that were read; None where none was."""
    most_samples: int | None = None
    """The largest batch that the data gave, where it gave fewer than were wanted."""
    has_evaluated: bool = False
    """Whether a module ran in evaluation mode while the memory was read: an evaluation, or a network not trained."""
    rows_of_a_pass: int | None = None
    """The rows that one pass over the data has in each process; None where the loaders do not say."""

    def steps_to_time(self, seconds: float = TIMED_SECONDS) -> int:
        return steps_to_time(self.probe.step_seconds, seconds) + self.timing.settling_steps


NOTHING_SEEN = Evidence(Probe(0, Outcome.ERROR))
NO_ALLOCATION = (
    "no allocation was seen: the training does not run on this device, or the script runs torch.profiler itself, which "
    "ends the one that reads the memory of a CPU: leave it out"
)
OWN_BATCHES = (
    "its DataLoader gets batches that are put together by a batch_sampler or by its data set: --batch dataloader has "
    "no size to set; write {batch_size} in the command, or use --batch env"
)


@dataclass(frozen=True)
class WatchedStart:
    """One start with `batch_size`: the hook's notes of its processes, and the machine's facts.

    `limit_bytes` is the budget of a CPU; a card's is in force in the command itself. `honoured` are other sizes, seen
    as the first dimension of inputs: they tell too small a data set from an ignored size. `data_end` is what earlier
    starts showed. `emulated` are the ranks that the start stood in for. Where a training `takes_any_size`, all that its
    steps consumed counts, and `counts_all` says whether steps of each size are timed; None: this start decides.
    """

    readings: Sequence[Reading]
    ended: Ended
    batch_size: int
    limit_bytes: int | None
    batch: str
    honoured: Collection[int]
    data_end: DataEnd | None = None
    emulated: Collection[int] = ()
    unit: Unit = ONE_ROW
    takes_any_size: bool = False
    counts_all: bool | None = None

    @cached_property
    def trained(self) -> list[Reading]:
        return sorted((r for r in self.readings if r.is_done), key=lambda r: r.rank)

    @cached_property
    def steps(self) -> list[list[Step]]:
        return [r.steps() for r in self.trained]

    def evidence(self) -> Evidence:
        """Return what the start shows. Raises CommandUntunable where that proves nothing."""
        _refuse(self._refusals_of_processes())
        if (failure := self._failure()) is not None:
            return self._failed(*failure)
        if not self.trained:
            return self._without_training()
        _refuse(self._refusals_of_ranks())
        counted = [self.unit.micro_batches(each, self.batch_size) for each in self.steps]
        if self.takes_any_size and None in counted:
            counted = [(0, 1)] * len(counted)
        found = [each for each in counted if each is not None]
        if len(found) < len(counted):
            return self._without_its_size()
        memories = [memory for r in self.trained if (memory := r.memory()) is not None]
        _refuse(self._refusals_of_steps(found, memories))
        return self._measured(*found[0], memories)

    def _refusals_of_processes(self) -> Refusals:
        """Yield why nothing of the start counts, whatever its processes did."""
        if self.emulated:
            yield from refusals_of_emulated(self.readings)
        threads = max((r.data.get("trainings", 1) for r in self.readings), default=1)
        if threads > 1:
            yield "several_trainings", f"{threads} threads of one process {TOGETHER}"

    def _failure(self) -> tuple[Outcome, str, str] | None:
        """Return the outcome, the error type and the message of a failed start; None if it did not fail."""
        ended = self.ended
        failed = sorted((r for r in self.readings if r.has_failed), key=lambda r: not r.has_trained)
        for reading in failed:
            if (outcome := _outcome(reading)) is not None:
                return outcome, *_error_of(reading)
        told = [r for r in self.readings if r.refused_allocations and r.was_told_of_refusals]
        if any(not is_consumed_alike(r.steps(), self.batch_size, self.unit) for r in told):
            swallowed = "the card refused an allocation; the training caught that and went on"
            return Outcome.OUT_OF_MEMORY, "OutOfMemoryError", swallowed
        if ended.kernel_killed:
            return Outcome.OUT_OF_MEMORY, KILLED_TYPE, "the kernel's out-of-memory killer ended it"
        if failed:
            return Outcome.ERROR, *_error_of(failed[0])
        if ended.timed_out_after_seconds is not None:
            text = f"its steps were not done within {ended.timed_out_after_seconds:.0f} s{ended.last_words}"
            return Outcome.ERROR, TIMEOUT, text
        if ended.exit_status and not any(r.is_done and r.ended == SIGNAL for r in self.readings):
            return Outcome.ERROR, "Exit", f"the command ended with status {ended.exit_status}{ended.last_lines}"
        return None

    def _failed(self, outcome: Outcome, error_type: str, message: str) -> Evidence:
        if self._data_ended and outcome is Outcome.ERROR:
            return self._out_of_data(f"{self._data_ended}; {describe_error(error_type, message)}")
        if self.honoured and error_type == NO_BATCH:
            return self._out_of_data(message)
        probe = self._ended_as(outcome, error_type, message)
        probe = replace(probe, beside_bytes=_beside_bytes(self.readings))
        return Evidence(probe, has_evaluated=self.ended.has_evaluated)

    def _without_training(self) -> Evidence:
        """Return that the data ended, or a script's hidden error. Raises CommandUntunable if no other size trained."""
        readings, data_end, ended, seen = self.readings, self.data_end, self.ended, self.ended.seen
        if not readings and not (seen and seen.has_torch):
            why = "Python ran with the hook and did not import it" if seen and seen.processes > 0 else KEPT_OUT
            text = f"no Python process with torch was seen: {why}{ended.last_lines}"
            raise CommandUntunable("hook_not_loaded", text)
        if readings and data_end and self.batch_size > min(data_end.walls, default=0):
            return self._out_of_data(data_end.describe(self.batch_size))
        most = max((len(r.steps()) for r in readings), default=0)
        empty = next((each for r in readings if (each := r.empty_passes)), None)
        early = f"the training ended after {most} optimizer steps, before its memory was known"
        early += f"{f'; {empty}' if empty else ''}{ended.last_words}"
        if not readings or not self.honoured:
            raise CommandUntunable("ended_early", early)
        # with rows enough, or within a step, it was no end of data: a script that hides its errors ends in order, too
        if (data_end is not None and not empty) or any(r.went_forward_last for r in readings):
            return Evidence(self._ended_as(Outcome.ERROR, "Exit", early))
        return self._out_of_data(early)

    def _refusals_of_ranks(self) -> Refusals:
        """Yield why it was not one group of alike ranks that trained, with the size that was set."""
        trained, ended, emulated = self.trained, self.ended, len(self.emulated)
        world_size, finished = trained[0].world_size, len({r.rank for r in trained})
        alone = max(len(trained) - max(emulated - 1, 0), ended.seen.training if ended.seen else 0)
        if finished < (emulated or world_size):
            yield "ranks_disagree", f"{finished} of {world_size} ranks made enough optimizer steps"
        if emulated and alone > 1:
            yield "cannot_emulate", OWN_RANKS
        if world_size == 1 and alone > 1:
            yield "several_trainings", f"{alone} processes without a process group {TOGETHER}"
        if self.batch in SETTERS and not any(SETTERS[self.batch] in r.set_by() for r in self.readings):
            gets_own = self.batch == "dataloader" and any(r.gets_own_batches for r in self.readings)
            called = f"no {SETTERS[self.batch]}(...) was called: --batch {self.batch} needs one"
            yield "batch_size_not_set", OWN_BATCHES if gets_own else called
        if len(gpus := {(r.card["name"], r.card["total_bytes"]): r.rank for r in trained if r.card}) > 1:
            shown = ", ".join(sorted(f"{printable(name)} of rank {rank}" for (name, _), rank in gpus.items()))
            yield "gpus_differ", f"the GPUs of the ranks differ: {shown}; the result would be of one"

    def _refusals_of_steps(self, counted: Sequence[tuple[int, int]], memories: Sequence[Memory]) -> Refusals:
        """Yield why the steps prove no memory; `counted` has the micro-batches of each rank, as `Unit` counts them."""
        if len(set(counted)) > 1:
            each_rank = [count for _, count in counted]
            consumed = f"the ranks consumed {each_rank} micro-batches of {self.batch_size} a step"
            yield "ranks_disagree", consumed
        if len(memories) < len(self.trained):
            yield "no_memory_seen", NO_ALLOCATION

    def _without_its_size(self) -> Evidence:
        """Return that the data did not feed the size. Raises CommandUntunable for another cause."""
        trained, steps, size, honoured, unit = self.trained, self.steps, self.batch_size, self.honoured, self.unit
        if self._data_ended:
            return self._out_of_data(self._data_ended)
        if not honoured and unit is ONE_ROW:
            check_undivided(trained, steps, size)
        message, largest = end_of_data(trained, steps, size, honoured, unit, has_evaluated=self.ended.has_evaluated)
        return replace(self._out_of_data(message), most_samples=largest)

    def _measured(self, axis: int, micro_batches: int, memories: Sequence[Memory]) -> Evidence:
        trained, steps, unit, first = self.trained, self.steps, self.unit, self.trained[0]
        worst = max(memories, key=lambda m: m.peak_bytes)
        observed, watched = differences_of(trained, steps, memories[0], unit, self.batch_size, axis, micro_batches)
        whole_run, only_read_bytes = first.whole_run, max(r.data.get("only_read_bytes", 0) for r in trained)
        is_cut = whole_run is not None and whole_run["is_evaluation_cut"]
        left = (whole_run or {}).get("evaluation_left") or 0
        if any(is_much(m.others_bytes, m.peak_bytes) for m in memories):  # of other threads: starts may differ
            watched = replace(watched, is_varied=True)
        is_script = whole_run is None and self.batch != FUNCTION  # a function has no whole run to go on to
        timing = UNTIMED  # what ranks exchange takes no time where there is one of them
        if not self.emulated:
            counts_all = self.counts_all if self.takes_any_size else False
            timing = Timing.of(trained, self.batch_size, micro_batches, unit, counts_all=counts_all)
        full = (step for step in steps[0] if unit.held(step, self.batch_size) == micro_batches)
        tokens = max((sum(each.tokens or 0 for each in step.forwards) for step in full), default=0)
        return Evidence(
            self._probe(worst, memories, timing, micro_batches),
            worst,
            timing,
            micro_batches,
            batch_axis=axis if unit is ONE_ROW else 0,  # by chance it is no other dimension
            ranks=tuple(m.peak_bytes for m in memories),
            world_size=first.world_size,
            tokens_per_step=tokens or None,
            whole_run=whole_run,
            unseen=Unseen(**first.data.get("unseen") or {}) if is_script else None,
            observed=replace(
                observed,
                growth_bytes=0 if (whole_run or {}).get("is_to_its_end") else max(m.growth_bytes for m in memories),
                kept_by_evaluation_bytes=max(m.kept_by_evaluation_bytes for m in memories) if is_cut else 0,
                evaluation_end_bytes=max(m.evaluation_end_bytes(left) for m in memories),
                idle_optimizers=max(r.data.get("idle_optimizers", 0) for r in trained),
                refused_allocations=max(r.refused_allocations for r in trained),
                only_read_bytes=only_read_bytes if is_much(only_read_bytes, worst.peak_bytes) else 0,
            ),
            watched=watched,
            has_evaluated=any(r.has_evaluated for r in trained),
            rows_of_a_pass=self._rows_of_a_pass(),
        )

    def _probe(self, worst: Memory, memories: Sequence[Memory], timing: Timing, micro_batches: int) -> Probe:
        cards = [r.card for r in self.trained if r.card]
        over = None
        if self.limit_bytes is not None and worst.peak_bytes > self.limit_bytes:
            over = f"out of memory: the peak is {describe_over(worst.peak_bytes, self.limit_bytes)}"
        return Probe(
            self.batch_size,
            Outcome.OUT_OF_MEMORY if over else Outcome.FITS,
            fresh_process=True,
            steps=sum(not s.is_timed for s in self.steps[0]),
            peak_allocated_bytes=worst.peak_bytes,
            peak_reserved_bytes=max((m.reserved_bytes for m in memories if m.reserved_bytes is not None), default=None),
            beside_bytes=_beside_bytes(self.trained),
            device_used_bytes=max((card["total_bytes"] - card["free_bytes"] for card in cards), default=None),
            allocator_retries=max((card["allocator_retries"] for card in cards), default=None),
            peak_phase=worst.phase,
            step_seconds=timing.typical_seconds,
            timed_step_seconds=timing.step_seconds,
            timing_is_steady=is_steady(timing.step_seconds) if timing.step_seconds else None,
            samples_per_second=timing.per_second(self.batch_size * micro_batches * len(self.trained)),
            error_type="BudgetExceeded" if over else None,
            error_message=over,
            failed_phase=worst.phase if over else None,
            wall_seconds=self.ended.wall_seconds,
        )

    def _rows_of_a_pass(self) -> int | None:
        rows = {r.rows_of_a_pass for r in self.trained}
        drawn = {rows for each in self.steps for step in each for rows in step.drawn}
        has_batches_as_rows = self.batch_size > 1 and drawn <= {1}
        is_drawn = self.unit is ONE_ROW or drawn <= {self.batch_size}
        return rows.pop() if len(rows) == 1 and is_drawn and not has_batches_as_rows else None

    @property
    def _data_ended(self) -> str:
        """Why the data cannot feed the batch size, by what earlier starts showed; empty where it can."""
        end = self.data_end
        return end.describe(self.batch_size) if end is not None and self.batch_size > end.largest else ""

    def _out_of_data(self, message: str) -> Evidence:
        return Evidence(self._ended_as(Outcome.SIZE_LIMIT, DATA_EXHAUSTED, message))

    def _ended_as(self, outcome: Outcome, error_type: str, message: str) -> Probe:
        return Probe(
            self.batch_size,
            outcome,
            fresh_process=True,
            error_type=error_type,
            error_message=message,
            wall_seconds=self.ended.wall_seconds,
        )


def _refuse(refusals: Refusals) -> None:
    for code, why in refusals:
        raise CommandUntunable(code, why)


def refusals_of_emulated(readings: Sequence[Reading]) -> Refusals:
    """Yield why starts that stood in for single ranks show nothing of them."""
    failed = [r for r in readings if r.has_failed]
    if (refused := next((r for r in failed if r.data["error_type"] == NOT_EMULATED), None)) is not None:
        yield "cannot_emulate", masked_text(refused.data["error_message"] or "")
    if any("invalid device ordinal" in (r.data["error_message"] or "") for r in failed):
        yield "cannot_emulate", OTHER_GPU
    if any(r.is_done and not r.data.get("has_group") for r in readings):
        yield (
            "no_process_group",
            "the training never called torch.distributed.init_process_group: it has no ranks to emulate; leave out "
            "--emulate-ranks, or start it as its launcher does",
        )


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
