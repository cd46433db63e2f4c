"""Whether `memorymark watch` names the cause of deaths that were planted: trainings that run out of memory, and others.

    python benchmarks/planted_deaths.py [--only WORD]

Each is a run of planted_deaths/train.py on the CPU. Its memory is limited by the kernel (RLIMIT_DATA), so that torch
really finds none; only what needs a card (pieces, other processes, the driver) raises the message of one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "benchmarks" / "results" / "planted_deaths.cpu.jsonl"
TRAINING = "benchmarks/planted_deaths/train.py"
LONGEST_SECONDS = 300

GROWTH = [
    (f"grows {kind} {mib}", "grows") for kind in ("outputs", "graphs", "noisy", "cache") for mib in (0.05, 0.5, 5.0)
]
DEATHS = [
    *GROWTH,
    *((f"evaluation {kind} 0", "evaluation") for kind in ("function", "inline", "collects", "late")),
    *((f"saving {kind} 0", "saving") for kind in ("copies", "function")),
    *((f"long {kind} 0", "long_batch") for kind in ("rows", "sorted", "workers", "tokens")),
    *((f"start {kind} 0", "too_large") for kind in ("first", "second")),
    *((f"loading {kind} 0", "loading") for kind in ("build", "move")),
    *((f"pieces {kind} 0", "in_pieces") for kind in ("early", "late")),
    *((f"others {kind} 0", "another_process") for kind in ("early", "late")),
    *((f"worker {kind} 0", "worker_memory") for kind in ("killed", "shared")),
    *((f"driver {kind} 0", "driver") for kind in ("assert", "lost")),
    ("disk log 0", "disk"),
    ("disk save 0", "cannot_tell"),
    *((f"ranks {kind} 0", "collective") for kind in ("timeout", "reset")),
    *((f"killed {kind} 0", "cannot_tell") for kind in ("kill", "term")),
    *((f"wrong {kind} 0", "not_memory") for kind in ("value", "shape")),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="deaths whose name has this word")
    only = parser.parse_args().only
    rows = []
    for row in planted([each for each in DEATHS if only in each[0]]):
        print(json.dumps(row), flush=True)
        rows.append(row)
    print(f"{sum(row['is_told'] for row in rows)} of {len(rows)} told")
    if not only:
        OUT.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def planted(deaths: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    for name, cause in deaths:
        command = [sys.executable, TRAINING, *name.split()]
        watch = [sys.executable, "-m", "engine", "watch", "--json", "--"]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [*watch, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST_SECONDS
        )
        report = json.loads(done.stderr.splitlines()[-1])
        found, growth = report["death"] and report["death"]["cause"], report["growth"]
        row = {"death": name, "cause": cause, "told": found, "is_told": found == cause, "steps": report["steps"]}
        if cause == "grows":
            planted_bytes = float(name.split()[2]) * 2**20
            row["slope_in_that_planted"] = round(growth["bytes_per_step"] / planted_bytes, 3) if growth else None
            row["piled_up"] = report["piled_up"]
        yield row


if __name__ == "__main__":
    main()
