"""Trainings that were watched on a card of 80 GiB, or on a CPU."""

from dataclasses import replace
from typing import Any

from engine.deaths.cause import explain, seen_by_its_process
from engine.facts.result import DeviceFacts
from engine.recording.recording import Process, Sample
from engine.recording.result import WatchResult
from engine.recording.spec import WatchSpec
from engine.text.units import GIB, MIB
from tests.factories import STACK

CARD = DeviceFacts("cuda:0", "cuda", "NVIDIA A100-SXM4-80GB", 80 * GIB, uuid="GPU-1")
CPU = DeviceFacts("cpu", "cpu", "Test CPU", 16 * GIB)
FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 80.00 GiB "
    "of which 1.00 GiB is free. Including non-PyTorch memory, this process has 79.00 GiB memory in use. Of the "
    "allocated memory 78.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated."
)


def make_watched(*, steps: int = 400, grows_bytes: int = 0, error: str = "", **facts: Any) -> WatchResult:
    """A training with batches of 64 that holds 5 GiB after a step and 20 GiB at its peak; `error` ended it."""
    held = [5 * GIB + step * grows_bytes for step in range(1, steps + 1)]
    samples: list[Sample] = [(step, step / 10, size, 20 * GIB) for step, size in enumerate(held, 1)]
    process = Process(steps, (steps - 1) / 10, 2.0, tuple(samples), batch_size=64, peak_bytes=20 * GIB)
    death = seen_by_its_process(explain(error), steps, was_evaluating=False) if error else None
    found = WatchResult(
        spec=WatchSpec(("python", "train.py", "--lr", "0.1"), device="auto"),
        environment=dict(STACK),
        status=1 if error else 0,
        total_seconds=steps / 10 + 5,
        device=CARD,
        device_count=1,
        process=replace(process, death=death),
    )
    return replace(found, **facts)


def make_watched_on_cpu() -> WatchResult:
    found = make_watched(steps=3, device=CPU)
    assert found.process is not None
    samples = tuple((step, at, 300 * MIB, 300 * MIB) for step, at, *_ in found.process.samples)
    return replace(found, process=replace(found.process, samples=samples, peak_bytes=300 * MIB))
