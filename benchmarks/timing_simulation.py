"""How far the speed comparison can be trusted: simulated with the functions that decide in a run.

    python benchmarks/timing_simulation.py [--runs 4000] [--processes 1] [--output FILE]

It goes on where its output file ends; delete the file after a change of the rules.

Each run draws a throughput curve (saturating, sometimes falling again), a reserve and today's batch size, and then a
machine: quiet, drifting (a random walk of 5 % a minute), warming up (15 % slower within some ten seconds), or beside a
job that comes and goes (8 s on, 12 s off on average, 1.3 to 2.2 times slower). `bursts, seen` is the same job on a
machine whose kernel tells how many cores others use. `shared` is a machine with a steady other load: each second it is
1.0 to 2.5 times slower. Every step has noise of its own besides,
and every run its own error of each size (`run_to_run`), which no round of it can show. The noise models are ours: they
show how sensitive the rules are, not how any machine behaves.

`held` and `anew` are the sizes that a script's starts would have compared, timed by blocks of starts that are held, or
by whole starts of 8 s and more, each with an error of its own. There a load slows batches up to 32 down 1.3 times more.

`orders` are of `engine.race.speed.order`: how often a size is said to be ahead that is truly as fast (`false`), beside
loads that other programs make on its cores, and how often one that is truly four or ten times as fast. `alternatives`
are the false ones of other rules: so many rounds, each above a ratio. `by computing` are the same where the time is
known for which each training had a core, whose ratio is off by `COMPUTING_DEVIATION`: also how often today's size is
kept, as no size gains 1.5x, where the truth is 1.2x or 2x.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from simulated_speeds import UNSTEADY, Curve, Machine, make_case, make_case_of_script  # noqa: E402

from engine.facts.speed_rounds import SpeedBlock, SpeedClaim, SpeedRound  # noqa: E402
from engine.race.speed.order import COMPUTING_DEVIATION, ROUNDS, is_ahead, order_of  # noqa: E402
from engine.race.speed.rounds import RUN_TO_RUN, Candidates, NextRound  # noqa: E402
from engine.race.speed.selection import (  # noqa: E402
    BLOCK_SECONDS,
    EVALUATION_ROUNDS,
    RECOMMENDED_WITHIN,
    SELECTION_ROUNDS,
    SpeedVerdict,
    decide,
)

MACHINES = ("quiet", "drift", "warming up", "bursts", "bursts, seen", "shared")
NOISES = (0.01, 0.02, 0.05)
CATALOGUE = "blocks of one process"
WAYS = (CATALOGUE, "held", "anew")
"""The sizes of a script are timed by blocks of half a second of starts that are held, or by whole starts."""
START_SECONDS, PAUSE_SECONDS, SMALL = 8.0, 0.1, 32
OUTPUT = ROOT / "benchmarks" / "results" / "timing_simulation.json"


def run_case(
    curve: Curve, candidates: Candidates, machine: Machine, noise: float, rng: random.Random, way: str = CATALOGUE
) -> Outcome:
    """One comparison from its first round to its verdict."""
    rounds: list[SpeedRound] = []
    at = 0.0
    sizes = {*candidates.sizes, candidates.current or candidates.sizes[0]}
    own = {size: error_of_a_run(rng, candidates.run_to_run) for size in sorted(sizes)}
    while isinstance(step := decide(candidates, rounds), NextRound):
        if way == "anew":
            own = {size: error_of_a_run(rng, candidates.run_to_run) for size in sorted(sizes)}
        play = run_round if way == CATALOGUE else partial(run_round_of_starts, way=way)
        done = play(step, curve, own, machine, at, noise, rng)
        rounds.append(done)
        at += done.seconds
    return Outcome(step, rounds)


def error_of_a_run(rng: random.Random, run_to_run: float) -> float:
    """By how much a process is slower at a size than the next one; `run_to_run` is that of a ratio."""
    return math.exp(rng.gauss(0, run_to_run / math.sqrt(2)))


def run_round_of_starts(
    step: NextRound[int],
    curve: Curve,
    own: dict[int, float],
    machine: Machine,
    at: float,
    noise: float,
    rng: random.Random,
    way: str,
) -> SpeedRound:
    """One block of each size, in its start that is held or in a new one. Load slows small batches 1.3 times more."""
    least, block_seconds, pause = (3, 0.5, PAUSE_SECONDS) if way == "held" else (6, 2.0, START_SECONDS)
    blocks, now = [], at
    for size in rng.sample(step.entries, len(step.entries)):
        now += pause
        true, seconds, others = size / curve.speed(size) * own[size], list[float](), 0.0
        while len(seconds) < least or sum(seconds) < block_seconds:
            slowdown, used = machine.slowdown(now), machine.others_cores or 0.0
            slowdown *= 1.3 if used and size <= SMALL else 1.0
            seconds.append(true * slowdown * math.exp(rng.gauss(0, noise)))
            others, now = max(others, used), now + seconds[-1]
        mean = sum(seconds) / len(seconds)
        blocks.append(SpeedBlock(size, mean, 0, len(seconds), others, was_held=way == "held"))
    return SpeedRound(step.stage, now - at, tuple(blocks))


def run_round(
    step: NextRound[int],
    curve: Curve,
    own: dict[int, float],
    machine: Machine,
    at: float,
    noise: float,
    rng: random.Random,
) -> SpeedRound:
    """One block of each size. `own` is by how much this run's process is slower at a size than the next one's."""
    blocks, now = [], at
    for size in rng.sample(step.entries, len(step.entries)):
        true, seconds, others = size / curve.speed(size) * own[size], [], 0.0
        block_seconds = BLOCK_SECONDS[step.stage]
        if true < block_seconds:
            now += true * machine.slowdown(now)  # the untimed step after a switch
        while not seconds or sum(seconds) < block_seconds:
            took = true * machine.slowdown(now) * math.exp(rng.gauss(0, noise))
            others = max(others, machine.others_cores or 0.0)
            seconds.append(took)
            now += took
        others = max(others, machine.others_cores or 0.0)
        known = others if machine.others_cores is not None else None
        blocks.append(SpeedBlock(size, median(seconds), 0, len(seconds), known))
    return SpeedRound(step.stage, now - at, tuple(blocks))


@dataclass(frozen=True)
class Outcome:
    verdict: SpeedVerdict
    rounds: list[SpeedRound]

    @property
    def seconds(self) -> float:
        return sum(r.seconds for r in self.rounds)

    @property
    def extra_seconds(self) -> float:
        """Beyond the fewest rounds of each stage."""
        of = {stage: [r.seconds for r in self.rounds if r.stage is stage] for stage in {r.stage for r in self.rounds}}
        fewest = {"selection": SELECTION_ROUNDS, "evaluation": EVALUATION_ROUNDS}
        return sum(sum(seconds[fewest[stage] :]) for stage, seconds in of.items())


def simulate(kind: str, noise: float, runs: int, way: str = CATALOGUE, seed: int = 0) -> dict[str, Any]:
    """Many runs on one kind of machine: how often what was claimed was true.

    `interval_holds_truth` is of speed-ups with a figure, `at_least_is_true` of lower bounds without one (the truth is
    no less), `no_gain_is_true` of today's sizes that stayed without a figure (the other is no faster than its upper
    end). `missed_gain` is how much faster the best size that keeps the reserve is than the recommended one: a size that
    is not shown to be faster than today's is not recommended. `slower_than_today` counts recommended sizes that are
    truly slower than today's by more than 3 %.
    """
    rows = list(_runs(kind, noise, runs, way, seed))
    figures = [row for row in rows if row["claim"] == SpeedClaim.FIGURE]
    changed = [row for row in figures if row["holds"] is not None]
    bounds, kept = (
        [row for row in rows if row["claim"] == claim] for claim in (SpeedClaim.AT_LEAST, SpeedClaim.NO_GAIN)
    )
    seconds = sorted(row["seconds"] for row in rows)
    extra = sorted(row["extra"] for row in rows)
    return {
        "way": way,
        "machine": kind,
        "step_noise": noise,
        "runs": runs,
        "interval_holds_truth": share(row["holds"] for row in changed),
        "figures": len(figures),
        "at_least_is_true": share(row["holds"] for row in bounds),
        "at_least": len(bounds),
        "no_gain_is_true": share(row["holds"] for row in kept),
        "no_gain": len(kept),
        "missed_gain_p50": quantile(sorted(row["missed"] for row in figures), 0.5),
        "missed_gain_p95": quantile(sorted(row["missed"] for row in figures), 0.95),
        "slower_than_today": sum(row["is_slower"] for row in rows) / runs,
        "abstained": sum(row["claim"] == SpeedClaim.NOTHING for row in rows) / runs,
        "speedup_error_p95": quantile(sorted(row["error"] for row in changed), 0.95),
        "interval_spread_p50": quantile(sorted(row["spread"] for row in changed), 0.5),
        "seconds_p50": quantile(seconds, 0.5),
        "seconds_p95": quantile(seconds, 0.95),
        "extra_seconds_p50": quantile(extra, 0.5),
        "extra_seconds_p95": quantile(extra, 0.95),
        "extra_seconds_max": extra[-1],
        "blocks": sum(row["blocks"] for row in rows) / runs,
        "ahead": sum(row["claim"] == SpeedClaim.AHEAD for row in rows),
        "ahead_is_true": share(row["holds"] for row in rows if row["claim"] == SpeedClaim.AHEAD),
    }


def _runs(kind: str, noise: float, runs: int, way: str, seed: int) -> Iterator[dict[str, Any]]:
    for number in range(runs):
        rng = random.Random(f"{seed} {kind} {noise} {number}")
        curve, candidates = make_case(rng) if way == CATALOGUE else make_case_of_script(rng, way)
        outcome = run_case(curve, candidates, Machine(kind, rng), noise, rng, way)
        verdict = outcome.verdict
        row: dict[str, Any] = {"claim": verdict.claim, "holds": None, "missed": 0.0, "is_slower": False}
        row |= {
            "blocks": sum(len(r.blocks) for r in outcome.rounds),
            "seconds": outcome.seconds,
            "extra": outcome.extra_seconds,
            "error": 0.0,
            "spread": 1.0,
        }
        best = max(curve.speed(s) for s in candidates.with_reserve)
        today = curve.speed(candidates.current or 0)
        if verdict.recommended is not None:
            speed = curve.speed(verdict.recommended)
            row["missed"] = max(best / speed - 1, 0.0)
            row["is_slower"] = speed < today * (1 - RECOMMENDED_WITHIN)
        if verdict.claim is SpeedClaim.NO_GAIN:
            sizes = verdict.compared
            row["holds"] = sizes is not None and curve.speed(sizes.batch_size) / today <= sizes.high
        elif verdict.claim is SpeedClaim.AHEAD:
            row["holds"] = curve.speed(verdict.recommended or 0) > today
        elif verdict.recommended not in (None, candidates.current) and verdict.speedup is not None:
            true, found = curve.speed(verdict.recommended) / today, verdict.speedup
            is_figure = verdict.claim is SpeedClaim.FIGURE
            row["holds"] = found.low <= true and (true <= found.high or not is_figure)
            row["error"] = abs(math.log(found.value / true))
            row["spread"] = found.spread
        yield row


def _burst(rng: random.Random, chance: float, least: float, most: float) -> float:
    """The logarithm of how many times longer a block takes, which a burst hits by chance."""
    return math.log(rng.uniform(least, most)) if rng.random() < chance else 0.0


def _punished(rng: random.Random) -> float:
    return math.log(rng.uniform(2, 3))


LOADS: dict[str, Callable[[random.Random], float]] = {
    "quiet": lambda rng: 0.0,
    "drift": lambda rng: math.log(1.05),
    "bursts": lambda rng: _burst(rng, 0.4, 1.3, 2.2) - _burst(rng, 0.4, 1.3, 2.2),
    "long pauses": lambda rng: _burst(rng, 0.5, 2, 20) - _burst(rng, 0.5, 2, 20),
    "small batches 2 to 3 times slower": _punished,
    "the same, now and then": lambda rng: _burst(rng, 0.6, 2, 3),
    "the same, and bursts": lambda rng: _punished(rng) + LOADS["bursts"](rng),
    "blocks delayed by anything": lambda rng: rng.gauss(0, 1.9),
    "the same, and small batches 2 to 3 times slower": lambda rng: _punished(rng) + rng.gauss(0, 1.9),
}
"""By how much a load changes the logarithm of the ratio of a larger size to today's in a round. 1.9 is what blocks of
0.4 s of a small network differed by on two cores with five programs."""
ALTERNATIVES = tuple((count, ratio) for count in (6, 10) for ratio in (1.5, 2.0, 3.0, 4.0, 6.0))


def orders(load: str, runs: int) -> dict[str, Any]:
    """Rounds of two sizes beside one load, until their order is shown or cannot be any more."""
    found: dict[str, Any] = {"load": load, "runs": runs}
    wrong = dict.fromkeys(ALTERNATIVES, 0)
    for name, true in (("false", 1.0), ("shown of 4x", 4.0), ("shown of 10x", 10.0)):
        rng, shown, rounds = random.Random(f"{load} {true}"), 0, 0
        for _ in range(runs):
            own = rng.gauss(math.log(true), RUN_TO_RUN)
            ratios = [own + LOADS[load](rng) + rng.gauss(0, 0.05) for _ in range(ROUNDS)]
            count = next(n for n in range(1, ROUNDS + 1) if is_ahead(ratios[:n]) is not None)
            shown, rounds = shown + bool(is_ahead(ratios[:count])), rounds + count
            if name == "false":
                for number, ratio in ALTERNATIVES:
                    wrong[number, ratio] += min(ratios[:number]) > math.log(ratio)
        found |= {name: shown / runs, f"rounds, {name}": round(rounds / runs, 2)}
    found["by computing"] = {f"{true}x": orders_by_computing(load, true, runs) for true in (1.0, 1.2, 2.0, 4.0)}
    return {**found, "alternatives": {f"{n} rounds above {r}": count / runs for (n, r), count in wrong.items()}}


def orders_by_computing(load: str, true: float, runs: int) -> dict[str, float]:
    """The share of the claims where the time for which each had a core is known."""
    rng, claims = random.Random(f"{load} {true} by computing"), Counter[str]()
    for _ in range(runs):
        own, off = rng.gauss(math.log(true), RUN_TO_RUN), rng.gauss(0, COMPUTING_DEVIATION)
        clock = [own + LOADS[load](rng) + rng.gauss(0, 0.05) for _ in range(ROUNDS)]
        computing = [own + off + rng.gauss(0, 0.1) for _ in range(ROUNDS)]
        found = (order_of(clock[:n], computing[:n]) for n in range(1, ROUNDS + 1))
        claims[next(claim for claim in found if claim is not None)] += 1
    return {claim: count / runs for claim, count in claims.items()}


def share(answers: Any) -> float | None:
    answers = list(answers)
    return sum(answers) / len(answers) if answers else None


def quantile(ordered: list[float], at: float) -> float | None:
    return ordered[min(int(at * len(ordered)), len(ordered) - 1)] if ordered else None


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| way, machine, step noise | figures | interval holds the truth | at least | is true | no gain | is true "
        "| missed gain, 95th of 100 | slower than today's | abstained | seconds, median "
        "| extra seconds, 95th of 100 |",
        "|---|" + "---:|" * 11,
    ]
    for row in rows:
        shown = [f"{row['figures']}", _percent(row["interval_holds_truth"])]
        shown += [f"{row['at_least']}", _percent(row["at_least_is_true"])]
        shown += [f"{row['no_gain']}", _percent(row["no_gain_is_true"])]
        shown += [_percent(row[name]) for name in ("missed_gain_p95", "slower_than_today", "abstained")]
        shown += [f"{row['seconds_p50']:.0f}", f"{row['extra_seconds_p95']:.0f}"]
        lines.append(f"| {row['way']}, {row['machine']}, {row['step_noise']:.0%} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{fraction:.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--orders", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = json.loads(options.output.read_text())["rows"] if options.output.exists() else []
    rows = [row for row in rows if row["runs"] == options.runs]
    done = {(row["machine"], row["step_noise"], row["runs"], row["way"]) for row in rows}
    of_script = ("quiet", UNSTEADY, "drift", "bursts, seen", "shared")
    ways = {way: MACHINES if way == CATALOGUE else of_script for way in WAYS}
    cases = [(kind, noise, options.runs, way) for way in WAYS for kind in ways[way] for noise in NOISES]
    cases = [case for case in cases if case not in done]
    with ProcessPoolExecutor(options.processes) as pool:
        known = [pool.submit(orders, load, options.orders) for load in LOADS]
        for row in map(Future.result, [pool.submit(simulate, *case) for case in cases]):
            rows.append(row)
            write(options, rows, [])
        found = [each.result() for each in known]
    write(options, rows, found)
    print(table(rows))
    print(order_table(found))


def write(options: argparse.Namespace, rows: list[dict[str, Any]], orders: list[dict[str, Any]]) -> None:
    report = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "runs": options.runs, "rows": rows, "orders": orders}
    options.output.write_text(json.dumps(report, indent=1) + "\n")


def order_table(found: list[dict[str, Any]]) -> str:
    names = ("false", "shown of 4x", "shown of 10x")
    of_computing = "1x ahead | 1.2x kept | 2x kept | 2x ahead"
    lines = [f"| load | {' | '.join(names)} | rounds, of 10x | {of_computing} |", "|---|" + "---:|" * 8]
    for row in found:
        shown, by = [f"{row[name]:.2%}" for name in names], row["by computing"]
        cases = (("1.0x", "ahead"), ("1.2x", "no_gain"), ("2.0x", "no_gain"), ("2.0x", "ahead"))
        more = " | ".join(f"{by[true].get(claim, 0):.2%}" for true, claim in cases)
        lines.append(f"| {row['load']} | {' | '.join(shown)} | {row['rounds, shown of 10x']:.1f} | {more} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
