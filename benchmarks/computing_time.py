"""How far the ratio of two sizes is off beside other work: by the clock, and by the time that each had a core.

    python benchmarks/computing_time.py [--rounds 6] [--output FILE]

Each case is a new process that trains both sizes in blocks of half a second that take turns, alone or beside busy
loops; its threads spin or sleep (`OMP_WAIT_POLICY=passive`) while they wait for each other. The truth is the clock's
ratio of the same training alone, with threads that spin: the middle of three processes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, pstdev
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

OUT = ROOT / "benchmarks" / "results" / "computing_time.json"
TRAININGS = (("bert-tiny", 16, 56), ("demo", 16, 492), ("resnet18", 2, 8))
LOADS, TRUTHS, BLOCK_SECONDS, LEAST_STEPS = (1, 2, 4), 3, 0.5, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--output", type=Path, default=OUT)
    parser.add_argument("--blocks", nargs=3, metavar=("TRAINING", "SIZE", "SIZE"), help="run one case in this process")
    given = parser.parse_args()
    if given.blocks:
        training, small, large = given.blocks
        print(json.dumps(ratios(training, int(small), int(large), given.rounds)))
        return
    rows = []
    for case in TRAININGS:
        true = median(measured(case, given.rounds)["clock"] for _ in range(TRUTHS))
        for policy in ("active", "passive"):
            for load in LOADS:
                row = {"training": case, "true": true, "policy": policy, "busy_loops": load}
                rows.append(row | measured(case, given.rounds, policy, load))
                print(rows[-1], flush=True)
    off = {policy: {by: errors(rows, policy, by) for by in ("clock", "computing")} for policy in ("active", "passive")}
    given.output.write_text(json.dumps({"rows": rows, "standard deviation": off}, indent=1) + "\n")
    print(off)


def measured(case: tuple[str, int, int], rounds: int, policy: str = "active", load: int = 0) -> dict[str, float]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
    variables = {**os.environ, **({"OMP_WAIT_POLICY": "passive"} if policy == "passive" else {})}
    command = [sys.executable, __file__, "--rounds", str(rounds), "--blocks", *map(str, case)]
    try:
        done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, check=True)
    finally:
        for each in loops:
            each.kill()
            each.wait()
    return dict(json.loads(done.stdout.splitlines()[-1]))


def ratios(training: str, small: int, large: int, rounds: int) -> dict[str, float]:
    """Return how many times as fast the larger size is, in the middle round."""
    from benchmarks.plain_steps import _step_of

    steps = {size: _step_of(training, size) for size in (small, large)}
    for step in (*steps.values(), *steps.values()):
        step()
    found: dict[str, list[float]] = {"clock": [], "computing": []}
    for number in range(rounds):
        speeds: dict[int, tuple[float, float]] = {}
        for size in (small, large) if number % 2 else (large, small):
            began, computed, count = time.perf_counter(), time.thread_time(), 0
            while count < LEAST_STEPS or time.perf_counter() - began < BLOCK_SECONDS:
                steps[size]()
                count += 1
            seconds = time.perf_counter() - began, time.thread_time() - computed
            speeds[size] = size * count / seconds[0], size * count / seconds[1]
        for by, (of_large, of_small) in zip(found, zip(speeds[large], speeds[small], strict=True), strict=True):
            found[by].append(of_large / of_small)
    return {by: median(each) for by, each in found.items()}


def errors(rows: list[dict[str, Any]], policy: str, by: str) -> float:
    """Return the standard deviation of the logarithm of what is measured over the truth."""
    return pstdev([math.log(row[by] / row["true"]) for row in rows if row["policy"] == policy], mu=0.0)


if __name__ == "__main__":
    main()
