"""Starts the sizes in turns, as `alternating_starts` decides, and says what happens."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean, median
from typing import Protocol

from ...errors import CommandUntunable, TimeIsUp
from ...machine.watch import MachineWatch, tree_seconds, usable_cores
from ...results.intervals import ENOUGH_ROUNDS
from ...results.result import Outcome, Probe, Purpose
from ...results.speed_rounds import SpeedBlock, SpeedRound, Stage
from ...speed.comparison import Comparison
from ...speed.reasons import PAIRS_ENDED, START_FAILED
from ...speed.rounds import RunRound
from .alternating_starts import (
    Compared,
    StartedRound,
    mean_speed,
    next_round,
    samples_of_a_step,
    starts_at_most,
    starts_expected,
    verdict,
)


class Blocks(Protocol):
    """What times a block of a size. Raises TimeIsUp and CommandUntunable."""

    @property
    def were_held(self) -> bool: ...
    def time(self, batch_size: int, /) -> Probe: ...
    def seconds_of_block(self, batch_size: int, /) -> float: ...


@dataclass
class InTurns:
    """A comparison in progress."""

    compared: Compared
    blocks: Blocks
    say: Callable[..., None]
    seconds_left: Callable[[], float]
    timed: list[Probe] = field(default_factory=list)
    rounds: list[StartedRound] = field(default_factory=list)
    others_cores: list[float | None] = field(default_factory=list)

    def compare(self) -> Comparison:
        self.compared = replace(self.compared, cores=len(usable_cores()))
        began, ended = time.monotonic(), None
        try:
            while (step := next_round(self.compared, self.rounds)) is not None:
                self._say(step, time.monotonic() - began)
                self.rounds.append(self._round(step))
        except TimeIsUp:
            pairs = self._number(Stage.EVALUATION) - 1
            ended = PAIRS_ENDED.write(count=pairs, least_count=ENOUGH_ROUNDS)
        except CommandUntunable as error:
            ended = START_FAILED
            self.say("log", level="warning", message=f"a start could not be timed: {error}")
        seconds, others = time.monotonic() - began, _mean(self.others_cores)
        cores = self.compared.cores
        judged = partial(verdict, self.compared, self.rounds, ended, seconds=seconds, are_held=self.blocks.were_held)
        found = judged(others_cores=others, cores=cores)
        return replace(found, speed_rounds=tuple(self._stored()))

    def probes(self, found: Comparison) -> list[Probe]:
        """Return one for each size that was timed, with the step times of all of its starts.

        Its speed is that of the comparison; without a verdict the mean of its steps stands, for what it is worth.
        """
        timed = [p for p in self.timed if p.timed_step_seconds and p.samples_per_second is not None]
        by_size = {n: [p for p in timed if p.batch_size == n] for n in dict.fromkeys(p.batch_size for p in timed)}
        speeds = {**found.rough, **{size: speed.value for size, speed in found.speeds.items()}}
        return [timing_of(speeds.get(n), starts) for n, starts in by_size.items()]

    def _round(self, step: RunRound) -> StartedRound:
        first = len(self.timed)
        speeds = {size: self._speed(size) for size in step.sizes}
        name = "pair" if step.stage is Stage.EVALUATION else "selection round"
        said = ", ".join(f"{size} with {speeds[size]:.1f}" for size in sorted(speeds))
        self.say("log", level="info", message=f"{name} {self._number(step.stage)}: {said} samples/s")
        seconds = sum(p.wall_seconds for p in self.timed[first:])
        return StartedRound(step.stage, speeds, seconds, _mean(self.others_cores[first:]))

    def _number(self, stage: Stage) -> int:
        return sum(r.stage is stage for r in self.rounds) + 1

    def _speed(self, batch_size: int) -> float:
        watch = MachineWatch(own_seconds=tree_seconds)
        probe = self.blocks.time(batch_size)
        self.others_cores.append(watch.read()["others_cores"])
        self.timed.append(probe)
        if not probe.fits or probe.samples_per_second is None:
            why = probe.error_message or "its data ended too early"
            raise CommandUntunable("not_timed", f"batch {batch_size} gave no speed: {why}")
        return mean_speed(probe)

    def _say(self, step: RunRound, spent: float) -> None:
        longest = max(self.blocks.seconds_of_block(size) for size in step.sizes)
        longest = max([longest, *(r.seconds / len(r.speeds) for r in self.rounds[-1:])])
        left = self.seconds_left()
        if left < longest * len(step.sizes):
            raise TimeIsUp
        at_most = max(min(longest * starts_at_most(self.rounds), self.compared.most_seconds - spent, left), 0.0)
        expected = starts_expected(self.compared, self.rounds)
        self.say(
            "timing",
            stage=step.stage,
            round=len(self.rounds) + 1,
            batch_sizes=sorted(step.sizes),
            seconds_spent=round(spent, 1),
            seconds_left_at_most=round(at_most, 1),
            rounds_expected=len(self.rounds) + max(len(expected), 1),
            seconds_left=round(min(longest * sum(expected), at_most), 1) if longest else None,
        )

    def _stored(self) -> Iterator[SpeedRound]:
        timed_steps, probes = Counter[int](), iter(zip(self.timed, self.others_cores, strict=True))
        for each in self.rounds:
            blocks = []
            for probe, others in (next(probes) for _ in each.speeds):
                steps = len(probe.timed_step_seconds)
                micro_batches = round(samples_of_a_step(probe) / probe.batch_size)
                first_step, middle = timed_steps[probe.batch_size], median(probe.timed_step_seconds)
                blocks.append(SpeedBlock(probe.batch_size, middle, first_step, steps, others, micro_batches))
                timed_steps[probe.batch_size] += steps
            yield SpeedRound(each.stage, each.seconds, tuple(blocks))


def _mean(others_cores: Sequence[float | None]) -> float | None:
    known = [each for each in others_cores if each is not None]
    return fmean(known) if known else None


def timing_of(speed: float | None, starts: Sequence[Probe]) -> Probe:
    first, steps = starts[0], tuple(s for p in starts for s in p.timed_step_seconds)
    samples_per_second = speed if speed else samples_of_a_step(first) / fmean(steps)
    return Probe(
        first.batch_size,
        Outcome.FITS,
        Purpose.TIMING,
        fresh_process=True,
        step_seconds=samples_of_a_step(first) / samples_per_second,
        timed_step_seconds=steps,
        samples_per_second=samples_per_second,
        wall_seconds=sum(p.wall_seconds for p in starts),
    )
