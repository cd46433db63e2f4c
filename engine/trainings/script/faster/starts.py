"""Starts a training with some variants set, and says what was seen of it; or why there is nothing to see."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean
from typing import Any

from ....errors import CommandUntunable, TimeIsUp, WorkloadFailed
from ....facts.result import DeviceFacts
from ....machine.execution import Execution
from ....machine.watch import MachineWatch, tree_seconds, usable_cores
from ....race.field import Timed
from ....race.numbers import STEPS
from ....report.script_output import MARK
from ....text.own_words import describe_error
from ...catalogue.handle import ALLOCATOR_VARIABLES, with_own_allocator_settings
from ..devices import check_is_watched, check_kind, environment_of, facts_of
from ..judge.batch_size import ONE_ROW
from ..judge.evidence import Evidence, WatchedStart
from ..judge.timed_steps import BLOCK_SECONDS, Loader, steps_to_time
from ..notes.file_changes import WrittenFiles
from ..notes.progress import Ended
from ..notes.reading import Reading
from ..sizes.next_start import seconds_of_a_start
from ..speed.seats import timed_again
from ..start.failure import describe_failure, with_its_cause
from ..start.held import HeldStarts, is_room
from ..start.launch import Begin, OnTick, Started, Watching, start
from .answer import describe_entry
from .facts import QUEUE, Facts, Noted, Today, Trial, own_batch_size, settled_speed
from .spec import OWN, OwnRaceSpec
from .variants import BY_NAME

SEED, OTHER_SEED = 0, 1
TRIAL_STEPS, LEAST_STEPS = 5, 3
MOST_TIMED_SECONDS = 15.0  # of the steps that count


class StartFailed(Exception):
    """A start gave nothing to compare; the text says why, and holds none of the script's own output."""


@dataclass(kw_only=True)
class Starts:
    """The starts of one run. `cache_folder` keeps torch.compile's files; `waiting` starts can time a block."""

    spec: OwnRaceSpec
    execution: Execution
    begin: Begin
    started_as: Mapping[str, Any]
    cache_folder: str
    files: WrittenFiles
    waiting: HeldStarts[tuple[str, ...]]
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    facts: Facts = field(init=False)
    """What today's first start showed."""
    device: DeviceFacts = field(init=False)
    """The device of today's training."""
    environment: dict[str, Any] = field(init=False)
    own_size: int | None = None
    counts_all: bool | None = None
    seconds: list[float] = field(default_factory=list)
    evidence: dict[tuple[str, ...], Evidence] = field(default_factory=dict)
    """What the starts that are held showed."""

    @property
    def batch_size(self) -> int:
        return self.own_size or self.spec.current_batch_size

    @property
    def cores(self) -> int:
        return len(usable_cores())

    def first(self) -> Trial:
        """Start today's training for the first time. Raises WorkloadFailed and CommandUntunable with their cause."""
        readings, ended = self._started((), Watching(TRIAL_STEPS, faster=self._set((), is_trial=True)))
        is_guessed = False
        try:
            trained = next((r for r in readings if r.is_done and r.rank == 0), None)
            if trained is not None:
                check_is_watched(trained)
            if self.spec.batch == OWN and trained is not None:
                self.own_size, is_guessed = own_batch_size(trained)
            evidence = self._evidence(readings, ended)
            self.counts_all = evidence.timing.counts_all
        except CommandUntunable as error:
            raise with_its_cause(error, self.spec, self.batch_size, ended) from None
        if not evidence.probe.fits:
            cause = describe_failure(self.spec, self.batch_size, ended)
            text = describe_error(evidence.probe.error_type, evidence.probe.error_message).partition(MARK)[0]
            raise WorkloadFailed(f"the training as it is failed: {text}{cause}")
        if not evidence.probe.timed_step_seconds:
            raise WorkloadFailed(f"the training as it is gave no step to time: {_why_untimed(readings)}")
        assert trained is not None
        self.device = replace(facts_of(self.spec, trained, self.others), limit_bytes=None)  # no start is given less
        check_kind(self.spec, self.device)
        self.environment = environment_of(self.spec, trained, self.device, self.started_as)
        self.execution.emit_event("device", device=self.device.to_dict(), environment=self.environment)
        ranks = max(len(evidence.ranks), 1)
        today = Today(
            batch_size=self.batch_size,
            is_batch_size_guessed=is_guessed,
            samples_per_step=self.batch_size * evidence.micro_batches * ranks,
            ranks=ranks,
            memory_bytes=evidence.probe.memory_bytes or 0,
            step_seconds=fmean(evidence.probe.timed_step_seconds),
            waiting_fraction=evidence.timing.waiting_fraction,
            loss_noise=None,
            cores=self.cores,
        )
        noted = Noted.of(trained.data["faster"])
        self.facts = Facts(noted, today, self.device.kind, self.device.compute_capability)
        return self._trial(trained, evidence)

    def trial(self, names: Iterable[str], *, mask_seed: int | None = None) -> Trial:
        """Start it for its losses and memory; `mask_seed`: a GPU's dropout draws other masks. Raises StartFailed."""
        names = tuple(names)
        settings = {**self._set(names, is_trial=True), "mask_seed": mask_seed}
        readings, ended = self._started(names, Watching(TRIAL_STEPS, faster=settings))
        evidence = self._seen(readings, ended)
        trained = next(r for r in readings if r.is_done and r.rank == 0)
        missing = [n for n in names if n not in trained.data["faster"]["applied"] and not BY_NAME[n].environment]
        if missing:
            raise StartFailed("it had no effect: the script sets it itself, or does not use it")
        return self._trial(trained, evidence)

    def timed(self, names: tuple[str, ...]) -> Timed:
        """Time a block, in a start that waits or a new one, without what any workers made ahead. Raises StartFailed."""
        began, watch = time.monotonic(), MachineWatch(own_seconds=tree_seconds)
        workers = max(self.facts.workers_to_try, self.facts.workers)
        ahead = Loader(workers, workers * QUEUE).settling_steps(1)
        steps = steps_to_time(self.facts.today.step_seconds, BLOCK_SECONDS) + ahead
        readings = self.waiting.turn(names, steps, self._most_seconds, partial(self._say, names))
        if readings is None:
            evidence = self._timed(names, ahead)
        else:
            evidence = timed_again(self.evidence[names], readings[0], ONE_ROW)
        return Timed(
            names,
            settled_speed(evidence, workers),
            watch.read()["others_cores"],
            time.monotonic() - began,
            was_held=readings is not None,
            computing_fraction=evidence.timing.computing_fraction,
            collecting_fraction=evidence.timing.collecting_fraction,
        )

    def _timed(self, names: tuple[str, ...], ahead: int) -> Evidence:
        step_seconds = self.facts.today.step_seconds
        watching = Watching(
            LEAST_STEPS,
            timed_steps=steps_to_time(step_seconds) + ahead,
            timed_seconds=MOST_TIMED_SECONDS + ahead * step_seconds,
            faster=self._set(names, is_trial=False),
        )
        once = partial(self._started, names)
        readings, ended = self.waiting.started(names, watching, once, is_room=self._is_room)
        evidence = self.evidence[names] = self._seen(readings, ended)
        if not evidence.probe.timed_step_seconds:
            self.waiting.release(names)
            raise StartFailed(f"it gave no step to time: {_why_untimed(readings)}")
        return evidence

    def _is_room(self) -> bool:
        taken = [each.probe.device_used_bytes or each.probe.memory_bytes or 0 for each in self.evidence.values()]
        return is_room(self.device, max(taken), max(taken) * len(self.waiting.held))

    def _seen(self, readings: list[Reading], ended: Ended) -> Evidence:
        try:
            evidence = self._evidence(readings, ended)
        except CommandUntunable as error:
            raise StartFailed(str(error).partition(MARK)[0]) from error
        if not evidence.probe.fits:
            probe = evidence.probe
            raise StartFailed(describe_error(probe.error_type, probe.error_message).partition(MARK)[0])
        return evidence

    def _started(self, names: tuple[str, ...], watching: Watching) -> tuple[list[Reading], Ended]:
        """Start it once. Raises TimeIsUp where the time budget ended it, or ends before it."""

        def hold(started: Started, _: list[Reading]) -> bool:
            self.waiting.held[names] = started
            return True

        self.execution.check_deadline()
        on_tick: OnTick = partial(self._say, names)
        readings, ended = start(
            self.begin, self.batch_size, watching, seconds=self._most_seconds, on_tick=on_tick, hold=hold
        )
        if ended.timed_out_after_seconds is not None and self.execution.seconds_left <= 0:
            raise TimeIsUp("the time budget is spent")
        self.files.take(ended.changes)
        self.seconds.append(ended.wall_seconds)
        return readings, ended

    @property
    def _most_seconds(self) -> float:
        return seconds_of_a_start(self.seconds, self.execution.seconds_left)

    def _say(self, names: tuple[str, ...], seen: str | None) -> None:
        if seen is not None:
            self.execution.log(f"{describe_entry(names)}: {seen}")

    def _evidence(self, readings: list[Reading], ended: Ended) -> Evidence:
        batch = self.spec.batch
        takes_any_size, counts_all = batch == OWN, self.counts_all
        return WatchedStart(
            readings, ended, self.batch_size,
            limit_bytes=None, batch=batch, honoured=(), takes_any_size=takes_any_size, counts_all=counts_all,
        ).evidence()  # fmt: skip

    def _trial(self, reading: Reading, evidence: Evidence) -> Trial:
        losses = tuple(float(each) for each in reading.data["faster"]["losses"][:STEPS])
        marks = reading.data["marks"]
        began = next(at for at, name, *_ in marks if name in ("phase", "batch"))
        read = next((at for at, name, *_ in marks if name == "memory_read"), began)
        return Trial(evidence.probe.memory_bytes or 0, losses, read - began)

    def _set(self, names: Iterable[str], *, is_trial: bool) -> dict[str, Any]:
        chosen = [BY_NAME[name] for name in names]
        variables = {"PYTHONHASHSEED": "0", "TORCHINDUCTOR_CACHE_DIR": self.cache_folder}
        environment = {name: value for name, value in variables.items() if name not in os.environ}
        for each in chosen:
            environment |= each.environment
        for name in ALLOCATOR_VARIABLES:
            if name in environment:
                environment[name] = with_own_allocator_settings(environment[name])
        to_set = {each.name: each.value(self.facts) for each in chosen if not each.environment}
        return {"seed": SEED, "set": to_set, "is_trial": is_trial, "environment": environment}


def _why_untimed(readings: Iterable[Reading]) -> str:
    """Say why there are no seconds of steps to compare, though enough steps were made."""
    if any(sum(step.is_timed for step in r.steps()) > 1 for r in readings):
        return "its steps consume different numbers of batches, so that their seconds cannot be compared"
    return "it has too little data or steps"
