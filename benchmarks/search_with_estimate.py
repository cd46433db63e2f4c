"""What an estimate saves the search, and what a wrong one costs it: simulated, on made-up curves of memory.

    python benchmarks/search_with_estimate.py [--devices 400] [--output FILE]

The curves are those of the search's own property tests: straight, bent, stepped, noisy, and noisy in what is refused.
Boundaries are spread evenly over the magnitudes from 1 to 100,000. Each estimate knows the smooth curve of its
device, wrong by the factor in its row, once in the bytes for a sample and once in the whole rise. Nothing is trained:
this counts probes and refusals, and says nothing of seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from engine.search.guided import ExpectedMemory, decide  # noqa: E402
from engine.search.unguided import SearchLimits, Trial  # noqa: E402
from tests.engine.synthetic_devices import KINDS, Device, make_device, search  # noqa: E402
from tests.engine.synthetic_estimates import WAYS, estimate  # noqa: E402

SEED = 4
MAXIMUM = 2**20
MARGIN = 0.02

Factor = Callable[[random.Random], float]
ESTIMATES: dict[str, Factor] = {
    "exact": lambda rng: 1.0,
    "within 2 %": lambda rng: rng.uniform(0.98, 1.02),
    "within 8 %": lambda rng: rng.uniform(0.92, 1.08),
    "half of what fits": lambda rng: 0.5,
    "twice what fits": lambda rng: 2.0,
    "a tenth": lambda rng: 0.1,
    "ten times": lambda rng: 10.0,
}


def trials_of(device: Device, expect: Callable[[int], int] | None) -> list[Trial]:
    """The whole search; stops if its answer is not the device's boundary."""
    expected = None if expect is None else ExpectedMemory(expect, MARGIN)
    limits = SearchLimits(device.limit_bytes, maximum=MAXIMUM)
    found, trials = search(device, lambda so_far: decide(so_far, limits, expected))
    if device.boundary not in (found.largest, None):
        sys.exit(f"{found.largest} found where the boundary is {device.boundary}: {trials}")
    return trials


def refusals(trials: list[Trial]) -> int:
    return sum(not t.fits for t in trials)


def spread(counts: list[int]) -> dict[str, float]:
    ordered = sorted(counts)
    at_95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    return {"median": median(ordered), "mean": round(mean(ordered), 2), "p95": at_95, "worst": ordered[-1]}


def row(kind: str, name: str, plain: list[list[Trial]], guided: list[list[Trial]]) -> dict[str, Any]:
    more = [len(b) - len(a) for a, b in zip(plain, guided, strict=True)]
    more_refused = [refusals(b) - refusals(a) for a, b in zip(plain, guided, strict=True)]
    return {
        "curve": kind,
        "estimate": name,
        "searches": len(guided),
        "probes": spread([len(trials) for trials in guided]),
        "refusals": spread([refusals(trials) for trials in guided]),
        "more_probes_than_plain": spread(more),
        "more_refusals_than_plain": spread(more_refused),
        "share_with_two_or_more_probes_more": round(sum(n > 1 for n in more) / len(more), 4),
        "share_with_two_or_more_refusals_more": round(sum(n > 1 for n in more_refused) / len(more), 4),
    }


def rows(kind: str, count: int) -> list[dict[str, Any]]:
    rng = random.Random(SEED)
    devices = [make_device(rng, kind) for _ in range(count)]
    plain = [trials_of(device, None) for device in devices]
    boundaries = [max((t.batch_size for t in trials if t.fits), default=0) for trials in plain]
    made = [row(kind, "none (plain search)", plain, plain)]
    for name, factor in ESTIMATES.items():
        guided = [
            trials_of(device, estimate(device, boundary, factor(rng), way))
            for way in WAYS
            for device, boundary in zip(devices, boundaries, strict=True)
        ]
        made.append(row(kind, name, plain * len(WAYS), guided))
    return made


def line(row: dict[str, Any]) -> str:
    probes, refused, more = row["probes"], row["refusals"], row["more_probes_than_plain"]
    figures = [f"{s['median']:g} / {s['p95']:g} / {s['worst']:g}" for s in (probes, refused)]
    worst = f"{more['mean']:+.1f} (worst {more['worst']:+d})"
    return f"| {row['curve']} | {row['estimate']} | {' | '.join(figures)} | {worst} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=400, help="of each kind of curve")
    parser.add_argument("--output", default=str(ROOT / "benchmarks" / "results" / "search_with_estimate.json"))
    options = parser.parse_args()
    print("| curve | estimate | probes (median / p95 / worst) | refusals | probes more than plain |")
    print("|---|---|---:|---:|---:|")
    found = []
    for kind in KINDS:
        for made in rows(kind, options.devices):
            found.append(made)
            print(line(made), flush=True)
    report = {
        "kind": "simulated",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "devices_of_each_curve": options.devices,
        "margin": MARGIN,
        "seed": SEED,
        "rows": found,
    }
    Path(options.output).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
