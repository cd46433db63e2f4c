"""Speed-ups beside other work: how often the interval holds the truth of the same machine left alone.

    python benchmarks/speed_under_load.py [--repeats 10] [--output FILE] [--model resnet18 bert-tiny]

Runs the whole analysis of each model `--repeats` times on a quiet machine, then as often beside a load that comes and
goes (a busy process for each core, on for 8 s and off for 12 s on average), and beside a steady one (one busy process
all the time). The truth is the median of the quiet speed-ups of the same two sizes. What is claimed without a figure is
judged by it, too: a lower bound of the speed-up, or no gain over today's size. Each run is one JSON line, written as
it ends: a benchmark that was stopped goes on where it was. Start it on a machine that does nothing else, or the quiet
runs are none; `others_cores` tells.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from engine.facts.speed_rounds import SpeedClaim  # noqa: E402
from engine.questions.size import measure  # noqa: E402
from engine.settings.spec import RunSpec  # noqa: E402
from engine.text.units import parse_bytes  # noqa: E402

OUTPUT = ROOT / "benchmarks" / "results" / "speed_under_load.cpu.jsonl"
WORKLOADS: dict[str, dict[str, Any]] = {
    "resnet18": {"image_size": 64, "memory_limit": "512MiB"},
    "bert-tiny": {"sequence_length": 64, "memory_limit": "512MiB"},
}
ON_SECONDS, OFF_SECONDS = 8.0, 12.0


class Load:
    """Busy processes while it is open: `load` comes and goes on every core, `steady` stays on one, `quiet` is none."""

    def __init__(self, beside: str, seed: int) -> None:
        cores = {"quiet": 0, "load": len(os.sched_getaffinity(0)), "steady": 1}[beside]
        target = _stay if beside == "steady" else _come_and_go
        self.processes = [multiprocessing.Process(target=target, args=(seed,), daemon=True) for _ in range(cores)]

    def __enter__(self) -> Load:
        for process in self.processes:
            process.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.join()


def _come_and_go(seed: int) -> None:
    """All processes of one seed come and go together."""
    rng = random.Random(seed)
    while True:
        time.sleep(rng.expovariate(1 / OFF_SECONDS))
        until = time.monotonic() + rng.expovariate(1 / ON_SECONDS)
        while time.monotonic() < until:
            pass


def _stay(_: int) -> None:
    while True:
        pass


def run(model: str, beside: str, number: int) -> dict[str, Any]:
    """One whole analysis, and what it said of the speed."""
    settings = dict(WORKLOADS[model])
    limit = parse_bytes(settings.pop("memory_limit"))
    spec = RunSpec(model, device="cpu", memory_limit_bytes=limit, **settings)
    with Load(beside, seed=number):
        result = measure(spec)
    speed = result.speed
    assert speed is not None
    return {
        "model": model,
        "beside": beside,
        "number": number,
        "claim": speed.claim,
        "reason": speed.reason,
        "recommended": result.recommended.batch_size if result.recommended else None,
        "current": spec.current_batch_size,
        "speedup": [result.speedup_low, result.speedup, result.speedup_high],
        "speeds": {p.batch_size: p.samples_per_second for p in result.probes if p.samples_per_second is not None},
        "rounds": speed.rounds,
        "quiet_rounds": speed.quiet_rounds,
        "others_cores": speed.others_cores,
        "timing_seconds": result.timings.timing_seconds,
        "total_seconds": result.timings.total_seconds,
    }


def truths(rows: list[dict[str, Any]]) -> dict[tuple[str, int], float]:
    """The speed-up of each recommended size on the quiet machine: the median of all runs that compared it."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        if row["beside"] == "quiet" and row["claim"] == SpeedClaim.FIGURE and row["speedup"][1] is not None:
            found.setdefault((row["model"], row["recommended"]), []).append(row["speedup"][1])
    return {key: statistics.median(values) for key, values in found.items()}


def is_true(row: dict[str, Any], true: float) -> bool:
    """Whether a claim holds on the quiet machine: a figure by both ends of its interval, a bound by its own."""
    low, _, high = row["speedup"]
    return bool(low <= true and (true <= high or row["claim"] == SpeedClaim.AT_LEAST))


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By model and surroundings: coverage of the quiet truth, abstentions, seconds."""
    true, lines = truths(rows), []
    for model, beside in sorted({(row["model"], row["beside"]) for row in rows}):
        of = [row for row in rows if (row["model"], row["beside"]) == (model, beside)]
        judged = [r for r in of if r["claim"] != SpeedClaim.NOTHING and (model, r["recommended"]) in true]
        held = sum(is_true(r, true[model, r["recommended"]]) for r in judged)
        quiet = [r["timing_seconds"] for r in rows if (r["model"], r["beside"]) == (model, "quiet")]
        median_seconds = statistics.median(r["timing_seconds"] for r in of)
        lines.append(
            {
                "model": model,
                "beside": beside,
                "runs": len(of),
                "claims": dict(Counter(r["claim"] for r in of)),
                "abstained": sum(r["claim"] == SpeedClaim.NOTHING for r in of),
                "judged": len(judged),
                "held_the_quiet_truth": held,
                "recommended": sorted({r["recommended"] for r in of if r["recommended"]}),
                "timing_seconds_median": median_seconds,
                "extra_seconds_median": median_seconds - statistics.median(quiet) if quiet else None,
            }
        )
    return lines


def _claiming(line: str) -> dict[str, Any]:
    """Read a row; those of before lower bounds were claimed say only whether there was a figure."""
    row: dict[str, Any] = json.loads(line)
    claim = SpeedClaim.FIGURE if row.get("is_measurable") else SpeedClaim.NOTHING
    return {"claim": claim, **row}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--model", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    rows = [_claiming(line) for line in options.output.read_text().splitlines()] if options.output.exists() else []
    done = {(row["model"], row["beside"], row["number"]) for row in rows}
    for beside in ("quiet", "load", "steady"):
        for number in range(options.repeats):
            for model in options.model:
                if (model, beside, number) in done:
                    continue
                rows.append(run(model, beside, number))
                with options.output.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
                print(json.dumps(rows[-1]), flush=True)
    for line in summary(rows):
        print(json.dumps(line))


if __name__ == "__main__":
    main()
