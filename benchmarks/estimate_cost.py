"""What estimates of an 8-billion-parameter model cost, for every card, and for checkouts of this repository in turn.

    python benchmarks/estimate_cost.py [--checkout DIR ...] [--rounds N] [--output FILE]

Each case runs in a process of its own, for each checkout one after the other and again, so that what else the machine
does hits all of them. The cost is the CPU time of that process (all threads), imports included: beside others it grows
by a third or so, which is why only the ratio within a round compares checkouts. `digest` is over every figure of the
estimates: two checkouts with one digest gave the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MODEL: dict[str, Any] = {"model": "llama-3.1-8b", "precision": "bf16"}
IN_4_BITS: dict[str, Any] = {"lora_rank": 16, "load_in_4bit": True}
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "8B, every card": (MODEL, "all"),
    "8B with 4 bits, every card": (MODEL | IN_4_BITS, "all"),
    "8B, one card": (MODEL, "a100-80gb"),
    "8B with 4 bits, one card": (MODEL | IN_4_BITS, "rtx-4090"),
    "BERT, one card": ({"model": "bert"}, "t4"),
}


def measured(case: str) -> dict[str, Any]:
    """Estimate a case in this process."""
    from engine.estimate import gpus
    from engine.estimate.estimator import Estimator
    from engine.spec import RunSpec

    settings, card = CASES[case]
    started = time.monotonic()
    cards = list(gpus.gpus().values()) if card == "all" else [gpus.find(card)]
    made = [estimate.to_dict() | {"seconds": None} for estimate in Estimator(RunSpec(**settings)).estimates(cards)]
    digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:16]
    wall = time.monotonic() - started
    return {"cpu_seconds": round(time.process_time(), 1), "wall_seconds": round(wall, 1), "digest": digest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, action="append", help="may be repeated; default this one")
    parser.add_argument("--case", choices=CASES, action="append", help="may be repeated; default all")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--here", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measured(options.here)), flush=True)
        os._exit(0)  # some builds of torch crash at the end of a process that traced
    runs = []
    for number in range(options.rounds):
        for case in options.case or CASES:
            for checkout in options.checkout or [ROOT]:
                command = [sys.executable, __file__, "--here", case]
                paths = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
                done = subprocess.run(command, env=paths, stdout=subprocess.PIPE, text=True, check=True)
                run = {"round": number, "case": case, "checkout": checkout.name, **json.loads(done.stdout)}
                print(json.dumps(run), flush=True)
                runs.append(run)
    for case in options.case or CASES:
        of_case = [run for run in runs if run["case"] == case]
        costs = {
            name: median(run["cpu_seconds"] for run in of_case if run["checkout"] == name)
            for name in {run["checkout"] for run in of_case}
        }
        print(f"{case}: {costs}, digests {sorted({run['digest'] for run in of_case})}")
    if options.output:
        options.output.write_text(json.dumps({"cpu_count": os.cpu_count(), "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
