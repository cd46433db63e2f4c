"""What the recorder of `memorymark watch` costs, and whether it raises a false alarm of growth.

    python benchmarks/recorder.py cost            in one process, blocks of steps in turns with and without its hooks
    python benchmarks/recorder.py alarms [--seconds 5] [SCRIPT ...]    each script of tune_scripts for some seconds

Starts of their own differ by up to 8 % here, more than what is to be seen: so the blocks of `cost` share a process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "benchmarks" / "results" / "recorder.cpu.jsonl"
SCRIPTS = ROOT / "benchmarks" / "tune_scripts"
SIZE, FIRST_STEPS, LONGEST_SECONDS = 16, 20, 120
WIDTHS, BLOCK_SECONDS, BLOCKS = (512, 4096, 32_768), 0.2, 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cost", "alarms"))
    parser.add_argument("scripts", nargs="*")
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    scripts = given.scripts or sorted(path.stem for path in SCRIPTS.glob("*.py"))
    for row in costs() if given.what == "cost" else alarms(scripts, given.seconds):
        print(json.dumps(row), flush=True)
        with OUT.open("a") as file:
            file.write(json.dumps(row) + "\n")


def costs() -> Iterator[dict[str, Any]]:
    import torch
    import torch.utils.data.dataloader as loaders
    from torch.optim import optimizer

    sys.path.insert(0, str(ROOT / "engine" / "trainings" / "script" / "hook"))
    import memorymark_recorder

    plain = loaders._BaseDataLoaderIter.__next__
    memorymark_recorder.Recorder({"folder": tempfile.mkdtemp()}).arm(torch)
    hooked, hooks = loaders._BaseDataLoaderIter.__next__, optimizer._global_optimizer_post_hooks
    [(key, hook)] = hooks.items()
    for width in WIDTHS:
        step = _training(torch, width)
        _seconds_of(step, FIRST_STEPS * 10)  # the recorder looks through the tensors once
        seconds = _seconds_of(step, FIRST_STEPS * 10)
        steps, ratios = max(3, round(BLOCK_SECONDS / seconds)), []
        for number in range(BLOCKS):
            found = {}
            for is_hooked in (number % 2 == 0, number % 2 == 1):
                hooks.clear()
                hooks.update({key: hook} if is_hooked else {})
                loaders._BaseDataLoaderIter.__next__ = hooked if is_hooked else plain
                found[is_hooked] = _seconds_of(step, steps)
            ratios.append(found[False] / found[True])
        low, middle, high = statistics.quantiles(ratios, n=4)
        spread = statistics.stdev(ratios) / len(ratios) ** 0.5
        yield {
            "width": width,
            "step_seconds": seconds,
            "speed_in_that_alone": round(middle, 4),
            "quartiles": [round(low, 4), round(high, 4)],
            "mean": round(statistics.fmean(ratios), 4),
            "standard_error": round(spread, 4),
        }


def _training(torch: Any, width: int) -> Any:
    data = torch.utils.data.TensorDataset(torch.randn(50_000, 64), torch.randint(0, 10, (50_000,)))
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 10))
    optimizer = torch.optim.AdamW(model.parameters())

    def batches() -> Iterator[Any]:
        while True:
            yield from torch.utils.data.DataLoader(data, batch_size=SIZE, shuffle=True)

    drawn = batches()

    def step() -> None:
        inputs, labels = next(drawn)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


def _seconds_of(step: Any, count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - began) / count


def alarms(scripts: list[str], seconds: float) -> Iterator[dict[str, Any]]:
    """Yield for each script what the report of its run says of growth; `grows` alone may be told to grow."""
    for script in scripts:
        training = f"benchmarks/tune_scripts/{script}.py"
        try:
            each = float(_run(training, FIRST_STEPS, is_watched=False).stdout.splitlines()[-1])
            done = _run(training, max(FIRST_STEPS, round(seconds / each)), is_watched=True)
            report = json.loads(done.stderr.splitlines()[-1])
            yield {"script": script, **{name: report[name] for name in ("steps", "seconds", "peak_bytes", "growth")}}
        except (ValueError, IndexError, subprocess.TimeoutExpired) as error:
            yield {"script": script, "left_out": type(error).__name__}


def _run(training: str, steps: int, *, is_watched: bool) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/plain_steps.py", training, str(SIZE), str(steps)]
    watch = [sys.executable, "-m", "engine", "watch", "--json", "--"] if is_watched else []
    settings: dict[str, Any] = {"cwd": ROOT, "env": {**os.environ, "CUDA_VISIBLE_DEVICES": ""}, "text": True}
    return subprocess.run([*watch, *command], capture_output=True, check=False, timeout=LONGEST_SECONDS, **settings)


if __name__ == "__main__":
    main()
