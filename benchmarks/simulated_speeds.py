"""Made-up throughput curves, what is compared of them, and machines that slow them down: for `timing_simulation.py`."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from engine.race.speed.rounds import BUSY_STARTS_FRACTION, RUN_TO_RUN_OF_STARTS, Candidates
from engine.trainings.script.speed.to_compare import EXTRA_SECONDS_OF_HELD, EXTRA_STARTS, others_to_compare

TICK_SECONDS, START_SECONDS = 0.1, 10.0
UNSTEADY = "unsteady"
"""A machine whose blocks of 0.4 s differ by 10 %, as those of a small network on two cores do."""


@dataclass(frozen=True)
class Curve:
    """True samples a second by batch size: rises towards `ceiling`, half of it at `half`; may fall from `knee` on."""

    ceiling: float
    half: float
    knee: float
    fall: float

    def speed(self, size: int) -> float:
        drop = self.fall * max(math.log2(size / self.knee), 0.0)
        return self.ceiling * size / (size + self.half) * (1 - drop)


def make_case(rng: random.Random) -> tuple[Curve, Candidates]:
    """A curve whose step at batch 16 takes 30 to 200 ms, and the sizes a run would have probed."""
    half = 10 ** rng.uniform(0.0, 2.0)
    ceiling = (16 + half) / rng.uniform(0.03, 0.2)
    largest = rng.choice((64, 128, 256, 528))
    curve = Curve(ceiling, half, rng.uniform(0.2, 2.0) * largest, rng.choice((0.0, 0.0, 0.02, 0.08)))
    edge = int(0.95 * largest)
    powers = [2**i for i in range(10) if 2**i < 0.8 * edge]
    current = rng.choice((4, 16, 16, 32))
    sizes = tuple(sorted({*powers, current, edge, largest}))
    return curve, Candidates(sizes, current, frozenset(s for s in sizes if s <= edge), cores=2)


def make_case_of_script(rng: random.Random, way: str) -> tuple[Curve, Candidates]:
    """A curve of the same kind, and the sizes that a script's starts would have compared."""
    half = 10 ** rng.uniform(0.0, 2.5)
    ceiling = (16 + half) / rng.uniform(0.03, 0.2)
    largest, today = rng.choice((64, 128, 256, 528, 2048)), rng.choice((4, 16, 16, 32))
    curve = Curve(ceiling, half, rng.uniform(0.2, 2.0) * largest, rng.choice((0.0, 0.0, 0.02, 0.08)))
    sizes = sorted({*(2**i for i in range(2, 12) if 2**i < 0.9 * largest), largest, today})
    by_start = {size: curve.speed(size) * math.exp(rng.gauss(0, 0.05)) for size in sizes}
    others = others_to_compare(by_start, today) or (largest,)
    return curve, Candidates(
        tuple(sorted(others)),
        today,
        frozenset(others),
        cores=2,
        shares_cores=True,
        busy_fraction=BUSY_STARTS_FRACTION,
        by_start={size: by_start[size] for size in others},
        run_to_run=RUN_TO_RUN_OF_STARTS,
        extra_seconds=EXTRA_SECONDS_OF_HELD if way == "held" else EXTRA_STARTS * START_SECONDS,
    )


class Machine:
    """How many times slower the machine is at a moment. Moments must be given in their order."""

    def __init__(self, kind: str, rng: random.Random) -> None:
        self.kind, self.rng = kind, rng
        self.until, self.is_on, self.factor = 0.0, rng.random() >= 0.4, 1.0
        self.walk, self.walked = 0.0, 0.0

    def slowdown(self, at: float) -> float:
        if self.kind == "drift":
            return self._drift(at)
        if self.kind == "warming up":
            return 1 + 0.15 * (1 - math.exp(-at / 10))
        if self.kind.startswith("bursts"):
            return self._burst(at)
        if self.kind == "shared":
            return self._redrawn(at, 1.0, lambda: self.rng.uniform(1.0, 2.5))
        if self.kind == UNSTEADY:
            return self._redrawn(at, 0.4, lambda: math.exp(self.rng.gauss(0, 0.1)))
        return 1.0

    def _drift(self, at: float) -> float:
        while self.walked < at:
            self.walk += self.rng.gauss(0, 0.05 * math.sqrt(TICK_SECONDS / 60))
            self.walked += TICK_SECONDS
        return math.exp(self.walk)

    def _burst(self, at: float) -> float:
        while at >= self.until:
            self.is_on = not self.is_on
            self.until += self.rng.expovariate(1 / (8 if self.is_on else 12))
            self.factor = self.rng.uniform(1.3, 2.2) if self.is_on else 1.0
        return self.factor

    def _redrawn(self, at: float, every_seconds: float, draw: Callable[[], float]) -> float:
        while at >= self.until:
            self.until += every_seconds
            self.factor = draw()
        return self.factor

    @property
    def others_cores(self) -> float | None:
        if self.kind == "shared":
            return 1.0
        return (1.0 if self.is_on else 0.0) if self.kind == "bursts, seen" else None
