"""Compares the speeds of the sizes that trained: `selection` decides what the worker times. Does not load torch.

All blocks run in one session of the worker. A size that fits alone may not fit there: it is left out, and named.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import Any

from ...errors import TimeIsUp
from ...facts.intervals import Interval
from ...facts.not_compared import NotCompared
from ...facts.result import Outcome, Point, Probe, Purpose
from ...facts.speed_rounds import ComparedSizes, SpeedBlock, SpeedClaim, SpeedRound
from ...text.from_json import from_json
from .claim import describe_bounds
from .outlook import outlook
from .rounds import EXTRA_SECONDS, Candidates, NextRound, describe_busy_rounds, describe_notable_others
from .selection import BLOCK_SECONDS, SpeedVerdict, decide, verdict_of


@dataclass(frozen=True, slots=True)
class TimedBlock:
    """The worker's result of a block: the times, or why there are none. A step has `micro_batches` of `batch_size`.

    `was_held`: it is no start of its own. Data may come in bursts to a block `of_a_script`, so that the mean of its
    steps is typical, not their median. `conditions`: other work's cores, paging, the card's clocks and temperature;
    of a compiled model also the seconds of the steps that compiled it, and how often it was compiled while timed.
    """

    batch_size: int
    outcome: Outcome
    step_seconds: tuple[float, ...] = ()
    wall_seconds: float = 0.0
    conditions: dict[str, Any] = field(default_factory=dict)
    error_type: str | None = None
    error_message: str | None = None
    micro_batches: int = 1
    was_held: bool = True
    of_a_script: bool = False
    computing_fraction: float | None = None
    collecting_fraction: float | None = None

    @property
    def samples_per_step(self) -> int:
        return self.batch_size * self.micro_batches

    @property
    def typical_seconds(self) -> float:
        return (fmean if self.of_a_script else median)(self.step_seconds)

    @property
    def samples_per_second(self) -> float:
        return self.samples_per_step / self.typical_seconds

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TimedBlock:
        return from_json(cls, data)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome of the comparison of speeds; without one only `why` is set. Of `compared` no figure is claimed."""

    claim: SpeedClaim = SpeedClaim.NOTHING
    why: NotCompared | None = None
    compared: ComparedSizes | None = None
    recommended: int | None = None
    fastest: int | None = None
    speedup: Interval | None = None
    speeds: dict[int, Interval] = field(default_factory=dict)
    rough: dict[int, float] = field(default_factory=dict)
    rounds: int = 0
    quiet_rounds: int = 0
    seconds: float = 0.0
    others_cores: float | None = None
    cores: int | None = None
    compile_seconds: float | None = None
    recompilations: int = 0
    left_out: tuple[int, ...] = ()
    speed_rounds: tuple[SpeedRound, ...] = ()
    method: str | None = None
    """How it was measured, where that is not in rounds of one process."""

    @property
    def is_measurable(self) -> bool:
        return self.claim is SpeedClaim.FIGURE

    @property
    def speed_by_size(self) -> dict[int, float]:
        """Return the samples a second of each compared size; empty where no figure is stated."""
        return {**self.rough, **{size: speed.value for size, speed in self.speeds.items()}}

    def is_compared(self, batch_size: int) -> bool:
        return batch_size in self.speeds or batch_size in self.rough


APART = 1.3
"""Sizes closer than this factor are not both candidates: a slightly smaller batch is at most slightly slower."""

RunBlock = Callable[[int, float], TimedBlock]
"""Runs a block: takes a batch size and the seconds that its steps should take. Raises TimeIsUp."""
EmitTiming = Callable[[dict[str, Any]], None]


@dataclass(kw_only=True)
class SpeedComparison:
    """The comparison in progress, within `most_seconds`; `expected_seconds` holds until its rounds show better."""

    candidates: Candidates
    run_block: RunBlock
    emit: EmitTiming
    expected_seconds: float | None = None
    most_seconds: float = math.inf
    rng: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - the order of blocks
    rounds: list[SpeedRound] = field(default_factory=list)
    blocks: list[TimedBlock] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def run(self) -> Comparison:
        """Time rounds until there is a verdict, or no time for another round: `run_block` may raise TimeIsUp."""
        try:
            while isinstance(step := decide(self.candidates, self.rounds), NextRound):
                self._say(step)
                self._run_round(step)
        except TimeIsUp:
            ended = verdict_of(self.candidates, self.rounds)
            return self.cut_short(NotCompared.TIME_ENDED) if ended is None else concluded(self.cut_short(None), ended)
        return self.cut_short(NotCompared.NONE_TIMED) if step is None else concluded(self.cut_short(None), step)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def _say(self, step: NextRound[int]) -> None:
        spent, expected = self.seconds, self.expected_seconds
        if self.rounds and spent + self.rounds[-1].seconds > self.most_seconds:
            raise TimeIsUp
        # the longest round bounds each of the fewest ones
        fewest = 9 * max(r.seconds for r in self.rounds) if self.rounds else expected or 0.0
        at_most = max(min(fewest + self.candidates.extra_seconds, self.most_seconds) - spent, 0.0)
        ahead = outlook(self.rounds, self.candidates)
        left = ahead.seconds if ahead else None if expected is None else max(expected - spent, 0.0)
        self.emit(
            {
                "stage": step.stage,
                "round": len(self.rounds) + 1,
                "batch_sizes": list(step.entries),
                "seconds_spent": round(spent, 1),
                "seconds_left_at_most": round(at_most, 1),
                "rounds_expected": len(self.rounds) + max(ahead.rounds, 1) if ahead else None,
                "seconds_left": None if left is None else round(min(left, at_most), 1),
            }
        )

    def _run_round(self, step: NextRound[int]) -> None:
        """Run one block of each size. A size whose block cannot be run ends the round: the others go on without it."""
        blocks, seconds, left_out = [], 0.0, None
        for size in self.rng.sample(step.entries, len(step.entries)):
            block = self.run_block(size, BLOCK_SECONDS[step.stage])
            if block.outcome is not Outcome.FITS:
                left_out = size
                break
            first_step = sum(len(b.step_seconds) for b in self.blocks if b.batch_size == size)
            self.blocks.append(block)
            seconds += block.wall_seconds
            blocks.append(
                SpeedBlock(
                    size,
                    block.typical_seconds,
                    first_step,
                    len(block.step_seconds),
                    block.conditions.get("others_cores"),
                    block.micro_batches,
                    block.was_held,
                    block.computing_fraction,
                    block.collecting_fraction,
                )
            )
        self.rounds.append(SpeedRound(step.stage, seconds, tuple(blocks), left_out))

    def cut_short(self, why: NotCompared | None) -> Comparison:
        """Return what is known without a verdict: how long it took, and how much other work the machine did."""
        others = [b.conditions["others_cores"] for b in self.blocks if b.conditions.get("others_cores") is not None]
        compiling = [seconds for b in self.blocks if (seconds := b.conditions.get("compile_seconds")) is not None]
        return Comparison(
            why=why,
            seconds=self.seconds,
            others_cores=fmean(others) if others else None,
            cores=self.candidates.cores,
            compile_seconds=sum(compiling) if compiling else None,
            recompilations=sum(b.conditions.get("recompilations") or 0 for b in self.blocks),
            left_out=tuple(sorted(r.left_out for r in self.rounds if r.left_out is not None)),
            speed_rounds=tuple(self.rounds),
        )

    def probes(self, found: Comparison) -> list[Probe]:
        """Return a probe for each timed size, with the comparison's speed: medians would contradict it."""
        speeds = found.speed_by_size
        sizes = sorted({b.batch_size for b in self.blocks})
        return [probe_of([b for b in self.blocks if b.batch_size == s], speeds.get(s)) for s in sizes]


def concluded(facts: Comparison, verdict: SpeedVerdict) -> Comparison:
    """Add the verdict to what is known without one. Speeds of single sizes are stated only with figures."""
    found = replace(
        facts,
        claim=verdict.claim,
        compared=None if verdict.claim is SpeedClaim.FIGURE else verdict.compared,
        recommended=verdict.recommended,
        fastest=verdict.fastest,
        speedup=verdict.speedup,
        rounds=verdict.rounds,
        quiet_rounds=verdict.quiet_rounds,
    )
    return replace(found, speeds=verdict.speeds, rough=verdict.rough) if found.is_measurable else found


_REASONS = {
    SpeedClaim.AT_LEAST: "the least speed-up is known, but no figure",
    SpeedClaim.NO_GAIN: "no gain was found, and no figure is known",
    SpeedClaim.NOTHING: "speed not measurable here now",
}


def candidates_of(
    points: Mapping[int, Point],
    with_reserve: frozenset[int],
    current: int,
    cores: int,
    *,
    shares_cores: bool = False,
) -> Candidates:
    """Choose what to compare: today's size, the largest, the largest with reserve, and what lies well apart."""
    fixed = {max(points), max(with_reserve)} | ({current} & points.keys())
    remaining: list[int] = []
    for size in sorted(points, reverse=True):
        if size in fixed or all(max(size, other) >= APART * min(size, other) for other in {*remaining, *fixed}):
            remaining.append(size)
    return Candidates(
        sizes=tuple(sorted(remaining)),
        current=current if current in points else None,
        with_reserve=with_reserve & frozenset(remaining),
        cores=cores,
        shares_cores=shares_cores,
        extra_seconds=EXTRA_SECONDS,
    )


def reason_to_log(found: Comparison, today: int, *, shares_cores: bool) -> str | None:
    """Write "speed not measurable here now: 30 is 0.8 to 13x as fast as 16"; None with figures."""
    if (sizes := found.compared) is None:
        return found.why and found.why.describe(today)
    if found.claim is SpeedClaim.AHEAD:
        order = f"{sizes.batch_size} was faster than {sizes.other} in {found.rounds} of {found.rounds} rounds"
        return f"only the order is known: {order}"
    others = describe_busy_rounds(found.rounds, found.quiet_rounds)
    if others and shares_cores and found.claim is SpeedClaim.NOTHING:
        return f"{_REASONS[found.claim]}: {others}"
    bounds = describe_bounds(sizes.low, sizes.high)
    return f"{_REASONS[found.claim]}: {sizes.batch_size} is {bounds} as fast as {sizes.other}"


def comparison_lines(found: Comparison, today: int, *, shares_cores: bool) -> list[str]:
    reason_line = reason_to_log(found, today, shares_cores=shares_cores)
    lines = [] if reason_line is None else [reason_line]
    if found.left_out:
        sizes = ", ".join(map(str, found.left_out))
        lines.append(f"not timed, because they did not fit together with the others in one process: {sizes}")
    if (others := describe_notable_others(found.others_cores, found.cores)) is not None:
        lines.append(f"{others} meanwhile")
    if found.compile_seconds is not None:
        lines.append(f"compiling the sizes took {found.compile_seconds:.1f} s, which is in no step time")
    if found.recompilations:
        lines.append(f"{found.recompilations} graphs were compiled again in timed steps, whose times hold that")
    return lines


def probe_of(blocks: Sequence[TimedBlock], speed: float | None = None) -> Probe:
    """Return the probe of a size; of starts without a verdict the mean of their steps stands, for what it is worth."""
    steps, of_a_script = tuple(s for b in blocks for s in b.step_seconds), blocks[0].of_a_script
    if not speed and of_a_script:
        speed = blocks[0].samples_per_step / fmean(steps)
    seconds = blocks[0].samples_per_step / speed if speed else None
    return Probe(
        blocks[0].batch_size,
        Outcome.FITS,
        purpose=Purpose.TIMING,
        fresh_process=of_a_script,
        step_seconds=seconds,
        timed_step_seconds=steps,
        timing_conditions=_summary([b.conditions for b in blocks]),
        samples_per_second=speed,
        wall_seconds=sum(b.wall_seconds for b in blocks),
    )


def _summary(conditions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return numbers as their mean over the blocks, lists as every value that appears in any of them."""
    found: dict[str, Any] = {}
    for name in sorted({name for one in conditions for name in one}):
        values = [one[name] for one in conditions if one.get(name) is not None]
        if values and isinstance(values[0], list):
            found[name] = sorted({item for value in values for item in value})
        elif values:
            found[name] = fmean(values)
        else:
            found[name] = None
    return found
