"""Trains one batch size in a plain loop, and prints the mean seconds of a step: the product times nothing here.

    python benchmarks/plain_steps.py TRAINING SIZE STEPS [CHANGE ...]

TRAINING is `demo`, a model of the catalogue, or a script's path in the checkout. A script runs again where it ends
before its steps are made. The changes are options of its optimizer, `workers`, or `bf16` for autocast. The mean, and
for some seconds: collections of garbage, which a median passes over, take a seventh of some trainings.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
FIRST, STEPS, LEAST_SECONDS, PAIRS = 3, 50, 2.5, 4
"""The first steps do not count: the optimizer makes its state, caches fill."""
WORKERS, BF16 = {"num_workers": 2, "persistent_workers": True}, "bf16"


def main(training: str, size: int, steps: int, changes: list[str]) -> None:
    """Train, and end the process from inside its last step, wherever the training is."""
    adamw, loader = torch.optim.AdamW, torch.utils.data.DataLoader
    forms = {name: True for name in changes if name not in ("workers", BF16)}
    if forms:  # else the classes stay: Accelerate and Lightning ask what is an instance of them
        torch.optim.AdamW = partial(adamw, **forms)  # type: ignore
    if "workers" in changes:
        torch.utils.data.DataLoader = partial(loader, **WORKERS)  # type: ignore
    ends: list[float] = []

    def note(*_: object) -> None:
        ends.append(time.monotonic())
        timed = len(ends) - FIRST
        if timed >= steps and ends[-1] - ends[FIRST - 1] >= LEAST_SECONDS:
            print((ends[-1] - ends[FIRST - 1]) / timed, flush=True)
            os._exit(0)

    register_optimizer_step_post_hook(note)
    sys.argv = [training, str(size)]
    step = _step_of(training, size)
    with torch.autocast("cpu", enabled=BF16 in changes):  # bfloat16 on a CPU
        while True:
            step()


def _step_of(training: str, size: int) -> Callable[[], object]:
    if training.endswith(".py"):
        sys.path.insert(0, str((ROOT / training).parent))
        return partial(runpy.run_path, str(ROOT / training), run_name="__main__")
    if training == "demo":
        from engine.demo import make_step

        return make_step(size)
    from engine.measurement.workloads import build
    from engine.settings.spec import RunSpec

    built = build(RunSpec(training, device="cpu"), torch.device("cpu"))
    optimizer, batch = torch.optim.AdamW(built.model.parameters()), built.make_batch(size)

    def step() -> None:
        optimizer.zero_grad()
        built.loss(built.forward(batch), batch).backward()
        optimizer.step()

    return step


def ratios(training: str, size: int, changes: list[str], today: int) -> list[float]:
    """Return how many times as fast as today's training this is, in each pair of starts that take turns."""

    def speed(size: int, *changes: str) -> float:
        command = [sys.executable, __file__, training, str(size), str(STEPS), *changes]
        return size / float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)

    found = []
    for turn in range(PAIRS):
        pair = [(size, *changes), (today,)]
        speeds = {each: speed(*each) for each in (pair if turn % 2 else pair[::-1])}
        found.append(speeds[size, *changes] / speeds[today,])
    return found


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
