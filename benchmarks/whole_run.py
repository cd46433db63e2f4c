"""Tunes scripts whose data has a heavy tail, with and without `--whole-run`, and then runs both answers to the end.

    python benchmarks/whole_run.py             # all cases
    python benchmarks/whole_run.py pareto      # some
    python benchmarks/whole_run.py --scan      # rows a second of looking through data in memory

Each script trains two epochs, evaluates and saves. A size that ran out of memory in a full run is a wrong answer. The
best possible size is bounded by a full run of a size 5 % larger than ours: where that runs out, ours is within 5 %.
The size without `--whole-run` is that of the first batches, which is what other finders measure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engine.text.units import MIB  # noqa: E402
from engine.trainings.script.spec import TuneSpec  # noqa: E402
from engine.trainings.script.start.command import begin_command  # noqa: E402 - the checkout is put on the path first
from engine.trainings.script.start.launch import Watching, start  # noqa: E402 - the checkout is put on the path first

SCRIPT = ROOT / "benchmarks" / "tune_scripts" / "heavy_tail.py"
RESULTS = ROOT / "benchmarks" / "results" / "whole_run.cpu.jsonl"
LIMIT_MIB = 48
CASES = (
    *("log_normal", "pareto", "one_outlier", "longest_last", "grouped", "two_parts"),
    *("images", "larger_evaluation", "kept_outputs", "accumulation", "average_later", "best_copy"),
)
NEVER = 1_000_000  # steps: the memory is read until the script ends


def main(names: list[str]) -> int:
    """Run the cases and write a line for each; 1 where a size of ours ran out of memory."""
    if names == ["--scan"]:
        return scan()
    lines = [case(name) for name in names or CASES]
    return int(any(not line["survives"] for line in lines))


def case(name: str) -> dict[str, Any]:
    command = [sys.executable, str(SCRIPT), "{batch_size}", "{out}", name]
    began = time.monotonic()
    whole, first_batches = tuned(command, "--whole-run"), tuned(command)
    ours, theirs = (each["boundary"]["largest_batch_size"] for each in (whole, first_batches))
    larger = int(ours / 0.95) + 1
    peaks = {size: full_run_bytes(command, size) for size in {ours, theirs, larger}}
    limit_bytes = LIMIT_MIB * MIB
    line = {
        "case": name,
        "limit_mib": LIMIT_MIB,
        "ours": ours,
        "certified": whole["boundary"]["certified"],
        "note": whole["boundary"]["note"],
        "starts": [len(each["training"]["starts"]) for each in (whole, first_batches)],
        "survives": peaks[ours] <= limit_bytes,
        "is_within_5_percent": peaks[larger] > limit_bytes,
        "of_first_batches": theirs,
        "of_first_batches_survives": peaks[theirs] <= limit_bytes,
        "full_run_bytes": peaks,
        "seconds": round(time.monotonic() - began, 1),
    }
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)
    return line


def tuned(command: list[str], *options: str) -> dict[str, Any]:
    tune = [sys.executable, "-m", "engine", "tune", "--device", "cpu", "--json", "--memory-limit", f"{LIMIT_MIB}MiB"]
    options = ("--no-compare-speed", *options)
    done = subprocess.run([*tune, *options, "--", *command], cwd=ROOT, capture_output=True, text=True, timeout=1_800)
    if done.returncode:
        raise RuntimeError(f"{options}: exit status {done.returncode}: {done.stderr[-2_000:]}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def scan() -> int:
    """Look data sets in memory through, as the first start of a whole run does."""
    import torch

    from engine.trainings.script.hook.memorymark_rows import largest_rows

    count = 1_000_000
    ids = torch.zeros(count, 8, dtype=torch.long)
    data = {
        "TensorDataset": torch.utils.data.TensorDataset(ids, ids[:, 0]),
        "list of tensors": [torch.zeros(8)] * count,
        "list of dicts": [{"input_ids": [1] * 8, "labels": 1}] * count,
    }
    for name, rows in data.items():
        with tempfile.TemporaryDirectory() as folder:
            found = largest_rows(torch, rows, str(Path(folder, "rows.json")), 20.0)
        line = {"case": f"scan: {name}", "rows": found["looked"], "seconds": round(found["seconds"], 2)}
        line["rows_per_second"] = round(found["looked"] / found["seconds"])
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)
    return 0


def full_run_bytes(command: list[str], size: int) -> int:
    """Run the script to its end with a size; the peak of all its steps, evaluations and checkpoints."""
    spec = TuneSpec(tuple(command), device="cpu", memory_limit_bytes=LIMIT_MIB * MIB)
    readings, _ = start(partial(begin_command, spec), size, Watching(NEVER), seconds=1_200)
    memories = [memory.peak_bytes for each in readings if (memory := each.memory()) is not None]
    return max(memories)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
