"""Program: full steps of one batch size for some seconds, in a fresh process, each between two synchronisations."""

from __future__ import annotations

import json
import sys
import time
from statistics import mean, median

import torch

from engine.errors import EngineError
from engine.measurement.device import Device, open_device
from engine.measurement.step import TrainingStep, apply_precision
from engine.measurement.timing import warm_up
from engine.measurement.workloads import build
from engine.spec import MEMORY_STEPS, RunSpec


def main(device: str, spec: RunSpec, batch_size: int, seconds: float) -> int:
    apply_precision(spec.precision)
    try:
        opened = open_device(spec)
        step = TrainingStep(spec, build(spec, opened.torch_device), opened.torch_device)
        for _ in range(MEMORY_STEPS):
            step.clear_gradients()
            step(batch_size)
        warm_up(opened, step, batch_size)
        times = timed(opened, step, batch_size, seconds)
    except (EngineError, torch.OutOfMemoryError) as error:
        sys.stderr.write(f"error: batch {batch_size}: {error}\n")
        return getattr(error, "exit_status", 3)
    print(json.dumps(report(opened, batch_size, times)))
    return 0


def timed(device: Device, step: TrainingStep, batch_size: int, seconds: float) -> list[float]:
    times: list[float] = []
    deadline = time.perf_counter() + seconds
    device.synchronize()
    while (before := time.perf_counter()) < deadline:
        step.clear_gradients()
        step(batch_size)
        device.synchronize()
        times.append(time.perf_counter() - before)
    return times


def report(device: Device, batch_size: int, times: list[float]) -> dict[str, object]:
    """The first tenth beside the last tells whether the card slows down."""
    tenth = max(len(times) // 10, 1)
    return {
        "batch_size": batch_size,
        "steps": len(times),
        "mean_step_seconds": mean(times),
        "median_step_seconds": median(times),
        "first_tenth_step_seconds": mean(times[:tenth]),
        "last_tenth_step_seconds": mean(times[-tenth:]),
        "samples_per_second": batch_size / mean(times),
        "allocator_retries": device.allocator_retries(),
    }


if __name__ == "__main__":
    wanted = RunSpec.from_dict({**json.loads(sys.argv[2]), "device": sys.argv[1]})
    sys.exit(main(sys.argv[1], wanted, int(sys.argv[3]), float(sys.argv[4])))
