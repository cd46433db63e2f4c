"""How good the race's choice is, and how much time it takes: simulated with the functions that decide in a run.

    python benchmarks/race_rule.py [--races 4000] [--processes 1] [--held] [--output FILE]

Each race draws 4 to 10 changes: half of them neutral within about 2 %, some slower, some faster (up to 2.5 times); one
pair in twenty excludes each other. A combination is as fast as the product of its changes, times an interaction of each
pair (normal, 3 %; one pair in ten cancels most of the smaller gain). The machine is one of `timing_simulation.py`:
quiet, drifting, warming up, or beside a job that comes and goes, seen by the kernel or not. Each step has noise of 1, 2
or 5 %, and one step in twenty takes up to twice as long. Every block runs in a process of its own, which has an error
of its own (`RUN_TO_RUN` in a ratio of two); with `--held` each entry keeps its process, but for the evaluation's new
ones, as in a race of a script, and these differ by `RUN_TO_RUN_OF_STARTS`.

Quality: the true speed of the leader against the fastest of the single changes and pairs, and against the fastest of
all combinations, which the race need not find. Time: against the exhaustive
comparison, which times today's training, each change alone and each pair in rounds of the same blocks on the same
machine, until its fastest entry is known as well: by the rule that ends the race's evaluation. Its own quality stands
beside. An unclaimed leader is not recommended; a false claim recommends what is slower than today's.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "benchmarks"))

from timing_simulation import Machine  # noqa: E402

from engine.facts.intervals import ENOUGH_ROUNDS  # noqa: E402
from engine.facts.speed_rounds import SpeedClaim, Stage  # noqa: E402
from engine.facts.stats import NOISE_FRACTION  # noqa: E402
from engine.questions.faster.run import BLOCK_SECONDS, LEAST_STEPS  # noqa: E402
from engine.race.field import TODAY, Entry, Field, RacedRound, RaceVerdict, Timed  # noqa: E402
from engine.race.rule import MOST_ROUNDS_EVALUATION, NOISE, decide, ratio_of  # noqa: E402
from engine.race.speed.evaluation import LOOK_EVERY  # noqa: E402
from engine.race.speed.rounds import RUN_TO_RUN, RUN_TO_RUN_OF_STARTS, NextRound  # noqa: E402

MACHINES = ("quiet", "drift", "warming up", "bursts", "bursts, seen")
NOISES = (0.01, 0.02, 0.05)
SETUP_SECONDS = 2.0
MOST_SECONDS = 1200.0
OUTPUT = ROOT / "benchmarks" / "results" / "race_rule.json"


@dataclass(frozen=True)
class World:
    """The true speeds of a race."""

    field: Field
    step_seconds: float
    alone: dict[str, float]
    interactions: dict[frozenset[str], float]

    def logarithm(self, entry: Entry) -> float:
        pairs = (self.interactions[frozenset(pair)] for pair in combinations(entry, 2))
        return sum(self.alone[change] for change in entry) + sum(pairs)

    def loss(self, entry: Entry, most: int | None = None) -> float:
        """By what share it is slower than the fastest combination of up to `most` changes."""
        return 1 - math.exp(self.logarithm(entry) - max(self.logarithm(each) for each in self.entries(most)))

    def best_logarithm(self) -> float:
        return max(self.logarithm(each) for each in self.entries(1))

    def entries(self, most: int | None = None) -> list[Entry]:
        """All combinations without a conflict, up to `most` changes."""
        changes = self.field.changes
        wanted = (c for n in range((most or len(changes)) + 1) for c in combinations(changes, n))
        return [entry for each in wanted if (entry := self.field.entry(each)) is not None]


def make_world(rng: random.Random) -> World:
    changes = tuple(f"c{number}" for number in range(rng.randint(4, 10)))
    alone = {}
    for change in changes:
        kind = rng.random()
        if kind < 0.5:
            alone[change] = rng.gauss(0, 0.01)
        elif kind < 0.7:
            alone[change] = -abs(rng.gauss(0, 0.3))
        else:
            alone[change] = abs(rng.gauss(0, 0.12)) if rng.random() < 0.6 else rng.uniform(0.1, math.log(2.5))
    conflicts = [frozenset(pair) for pair in combinations(changes, 2) if rng.random() < 0.05]
    interactions = {}
    for pair in combinations(changes, 2):
        smaller = min(alone[c] for c in pair)
        cancels = rng.random() < 0.1 and smaller > 0
        interactions[frozenset(pair)] = -0.9 * smaller if cancels else rng.gauss(0, 0.03) * (smaller > 0.02)
    field = Field(changes, frozenset(conflicts), MOST_SECONDS, cores=2, shares_cores=True)
    return World(field, rng.uniform(0.03, 0.3), alone, interactions)


class Bench:
    """Runs blocks on a simulated machine, whose time goes on."""

    def __init__(
        self, world: World, machine: Machine, noise: float, rng: random.Random, *, holds: bool = False
    ) -> None:
        self.world, self.machine, self.noise, self.rng, self.holds = world, machine, noise, rng, holds
        self.now, self.units, self.evaluated = 0.0, 0, 0
        self.errors: dict[Entry, float] = {}  # of the processes that are held

    def round(self, step: NextRound[Entry]) -> RacedRound:
        began, is_evaluation = self.now, step.stage is Stage.EVALUATION
        if not self.holds or (is_evaluation and self.evaluated % ENOUGH_ROUNDS == 0):
            self.errors.clear()
        self.evaluated += is_evaluation
        timed = tuple(self.block(entry) for entry in self.rng.sample(step.entries, len(step.entries)))
        return RacedRound(step.stage, step.generation, timed, self.now - began)

    def block(self, entry: Entry) -> Timed:
        if not (was_held := entry in self.errors):
            self.now += SETUP_SECONDS
            run_to_run = RUN_TO_RUN_OF_STARTS if self.holds else RUN_TO_RUN
            self.errors[entry] = self.rng.gauss(0, run_to_run / math.sqrt(2))
        true = self.world.step_seconds / math.exp(self.world.logarithm(entry) + self.errors[entry])
        times: list[float] = []
        while sum(times) < max(BLOCK_SECONDS, LEAST_STEPS * self.world.step_seconds):
            tail = self.rng.uniform(1, 2) if self.rng.random() < 0.05 else 1.0
            times.append(true * self.machine.slowdown(self.now) * math.exp(self.rng.gauss(0, self.noise)) * tail)
            self.now += times[-1]
        self.units += 1
        return Timed(entry, 1 / median(times), self.machine.others_cores, was_held=was_held)


def one_race(seed: int, machine_kind: str, noise: float, holds: bool) -> dict[str, Any]:
    rng = random.Random(seed)
    world = make_world(rng)
    bench = Bench(world, Machine(machine_kind, rng), noise, rng, holds=holds)
    rounds: list[RacedRound] = []
    while isinstance(step := decide(world.field, rounds), NextRound):
        rounds.append(bench.round(step))
    whole, loss = exhaustive(world, machine_kind, noise, rng)
    found = {**_judged(world, step, machine_kind, noise), "units": bench.units, "seconds": bench.now}
    return {**found, **whole, "loss_of_exhaustive": loss}


def exhaustive(world: World, machine_kind: str, noise: float, rng: random.Random) -> tuple[dict[str, int], float]:
    """Time every entry until the fastest is known as well as the race's leader; its blocks, and its loss."""
    entries = world.entries(2)
    bench = Bench(world, Machine(machine_kind, rng), noise, rng)
    rounds: list[RacedRound] = []
    while True:
        rounds.append(bench.round(NextRound(Stage.EVALUATION, 0, tuple(entries))))
        if len(rounds) < ENOUGH_ROUNDS or (len(rounds) % LOOK_EVERY and len(rounds) < MOST_ROUNDS_EVALUATION):
            continue
        ratios = {e: ratio_of(e, TODAY, rounds, world.field) for e in entries if e != TODAY}
        best = max((e for e in entries if e != TODAY), key=lambda e: ratios[e].value)
        is_known = math.log(ratios[best].spread) / 2 <= NOISE
        if is_known or len(rounds) >= MOST_ROUNDS_EVALUATION:
            chosen = best if ratios[best].value > 1 else TODAY
            return {"units_of_exhaustive": bench.units}, world.loss(chosen, 2)


def _judged(world: World, verdict: RaceVerdict, machine: str, noise: float) -> dict[str, Any]:
    leader, gain = world.logarithm(verdict.leader), verdict.gain
    return {
        "machine": machine,
        "noise": noise,
        "changes": len(world.field.changes),
        "loss": world.loss(verdict.leader, 2),
        "loss_of_any": world.loss(verdict.leader),
        "is_found": verdict.is_found,
        "is_false": verdict.is_found and leader <= 0,
        "has_no_gain": verdict.claim is SpeedClaim.NO_GAIN,
        "overlooks": verdict.claim is SpeedClaim.NO_GAIN and world.best_logarithm() > math.log(verdict.least_gain),
        "is_held": gain is None or gain.low <= math.exp(leader) <= gain.high,
    }


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    count = len(found)
    units, whole = sum(each["units"] for each in found), sum(each["units_of_exhaustive"] for each in found)
    claims = [each for each in found if each["is_found"]]
    losses = sorted(each["loss"] for each in found)
    return {
        "races": count,
        "within_3_percent": round(sum(x <= NOISE_FRACTION for x in losses) / count, 4),
        "loss_95th": round(losses[int(0.95 * count)], 4),
        "within_3_percent_of_any_combination": round(sum(e["loss_of_any"] <= NOISE_FRACTION for e in found) / count, 4),
        "within_3_percent_exhaustive": round(sum(e["loss_of_exhaustive"] <= NOISE_FRACTION for e in found) / count, 4),
        "share_of_exhaustive_time": round(units / whole, 3),
        "blocks_median": sorted(each["units"] for each in found)[count // 2],
        "seconds_median": round(sorted(each["seconds"] for each in found)[count // 2]),
        "no_gain": sum(each["has_no_gain"] for each in found),
        "no_gain_false": sum(each["overlooks"] for each in found),
        "claims": len(claims),
        "false_claims": sum(each["is_false"] for each in claims),
        "interval_held": round(sum(each["is_held"] for each in claims) / max(len(claims), 1), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--races", type=int, default=4000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--held", action="store_true")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    cases = [(m, n) for m in MACHINES for n in NOISES]
    began = time.monotonic()
    jobs = [(seed, *cases[seed % len(cases)], options.held) for seed in range(options.races)]
    with ProcessPoolExecutor(options.processes) as pool:
        found = list(pool.map(one_race, *zip(*jobs, strict=True), chunksize=20))
    by_case = {
        f"{m}, noise {n:.0%}": summary([e for e in found if (e["machine"], e["noise"]) == (m, n)]) for m, n in cases
    }
    by_changes = {str(n): summary([e for e in found if e["changes"] == n]) for n in range(4, 11)}
    whole = {"all": summary(found), "by_machine": by_case, "by_number_of_changes": by_changes}
    options.output.write_text(json.dumps(whole, indent=1) + "\n")
    print(json.dumps(whole["all"]), f"{time.monotonic() - began:.0f} s")
    for name, row in {**by_case, **by_changes}.items():
        print(name, row)


if __name__ == "__main__":
    main()
