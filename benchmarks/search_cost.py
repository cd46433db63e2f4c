"""What finding the largest batch size costs: MemoryMark beside the ways in use, same workload, same limit.

    pip install -r requirements.txt -r benchmarks/requirements.txt
    python benchmarks/search_cost.py [--model bert-tiny] [--memory-limit 1836MiB] [--output FILE]

Every method trains the same model with AdamW on the CPU under the same budget: a step whose tensors exceed
it raises what a GPU raises (torch.OutOfMemoryError), measured by the same meter (allocator events). Each
runs in a process of its own, one after the other, with its defaults unless its row says otherwise:

    memorymark   this engine: the search, with the estimate before it; the whole run (soak, curve, speeds) stands apart
    memorymark-plain   the same without the estimate
    lightning    Lightning's Tuner.scale_batch_size(mode="binsearch"), margin 0.05 (default) and 0
    accelerate   accelerate's find_executable_batch_size from 1024, a training function of 3 steps
    eights       8, 16, 24, ... until the first refusal, 3 steps each
    autobatch    Ultralytics' published method (their package needs CUDA for it): forward + backward at 1, 2,
                 4, 8, 16, a straight line through the memory, solved for 60 % of the limit
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from engine.facts.result import Purpose  # noqa: E402
from engine.questions.size import measure  # noqa: E402
from engine.settings.spec import MEMORY_STEPS, RunSpec  # noqa: E402
from engine.text.units import parse_bytes  # noqa: E402

CHECK = "check"
METHODS = ("memorymark", "memorymark-plain", "lightning", "lightning-exact", "accelerate", "eights", "autobatch")


class Meter:
    """Counts probes, refusals and samples of one method, and refuses what exceeds the budget."""

    def __init__(self, spec: RunSpec) -> None:
        import torch

        from engine.measurement.workloads import build

        warnings.filterwarnings("ignore")
        torch.manual_seed(0)
        self.spec, self.torch = spec, torch
        self.built = build(spec, torch.device("cpu"))
        self.probes = self.refused = self.samples = 0

    def optimizer(self) -> Any:
        return self.torch.optim.AdamW(self.built.model.parameters(), lr=1e-5)

    def begin(self) -> None:
        """Before a step: no gradients live, the profiler running."""
        from torch.profiler import ProfilerActivity, profile

        self.built.model.zero_grad(set_to_none=True)
        self.trace = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
        self.trace.start()

    def end(self, batch_size: int, optimizer: Any, state_bytes: int) -> int:
        """After a step: its peak bytes. Raises as a GPU would when they exceed the budget."""
        from engine.measurement.live_blocks import TracedStep, explain
        from engine.measurement.traced_step import read_trace

        self.trace.stop()
        self.samples += batch_size
        model = self.built.model
        held = sum(t.nbytes for t in (*model.parameters(), *model.buffers()))
        events, _ = read_trace(self.trace, "cpu")
        peak = explain(TracedStep(events, held + state_bytes), None).total_bytes
        if peak > (self.spec.memory_limit_bytes or 0):
            self.refused += 1
            optimizer.state.clear()
            raise self.torch.OutOfMemoryError("CUDA out of memory. Simulated: the budget is exceeded.")
        return peak

    def train(self, batch_size: int, steps: int = MEMORY_STEPS, *, with_optimizer: bool = True) -> int:
        """One probe: `steps` full steps with a new optimizer; the highest peak."""
        self.probes += 1
        optimizer, peak = self.optimizer(), 0
        for _ in range(steps):
            state_bytes = optimizer_state_bytes(optimizer)
            self.begin()
            self.loss(batch_size).backward()
            if with_optimizer:
                optimizer.step()
            peak = max(peak, self.end(batch_size, optimizer, state_bytes))
        return peak

    def loss(self, batch_size: int) -> Any:
        """Return the loss of a forward pass whose outputs are dropped, as where a step returns the loss alone."""
        batch = self.built.make_batch(batch_size)
        return self.built.loss(self.built.forward(batch), batch)

    def fits(self, batch_size: int) -> bool:
        try:
            self.train(batch_size)
        except self.torch.OutOfMemoryError:
            return False
        return True


def optimizer_state_bytes(optimizer: Any) -> int:
    return sum(v.nbytes for state in optimizer.state.values() for v in state.values() if hasattr(v, "nbytes"))


def eights(meter: Meter) -> int:
    size = 0
    while meter.fits(size + 8):
        size += 8
    return size


def autobatch(meter: Meter) -> int:
    sizes = [1, 2, 4, 8, 16]
    peaks = [meter.train(size, steps=1, with_optimizer=False) for size in sizes]
    mean_size, mean_peak = sum(sizes) / 5, sum(peaks) / 5
    slope = sum((s - mean_size) * (p - mean_peak) for s, p in zip(sizes, peaks, strict=True))
    slope /= sum((s - mean_size) ** 2 for s in sizes)
    return int((0.60 * (meter.spec.memory_limit_bytes or 0) - (mean_peak - slope * mean_size)) / slope)


def accelerate(meter: Meter) -> int:
    from accelerate.utils import find_executable_batch_size

    @find_executable_batch_size(starting_batch_size=1024)
    def training(batch_size: int) -> int:
        meter.train(batch_size)
        return batch_size

    return int(training())


def lightning(meter: Meter, margin: float) -> int:
    import logging

    from engine.measurement.torchvision_schemas import import_torchvision

    import_torchvision()  # Lightning imports it, which the CPU build of torch alone does not allow
    import lightning.pytorch as pl
    from lightning.pytorch.tuner import Tuner
    from torch.utils.data import DataLoader, Dataset

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Samples(Dataset):
        """Long enough for any size; the batch itself is made by the workload."""

        def __len__(self) -> int:
            return 10**6

        def __getitem__(self, index: int) -> int:
            return index

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.batch_size = 2
            self.network = meter.built.model

        def configure_optimizers(self) -> Any:
            return meter.optimizer()

        def train_dataloader(self) -> Any:
            return DataLoader(Samples(), batch_size=self.batch_size)

        def on_train_start(self) -> None:
            meter.probes += 1

        def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
            self.state_bytes = optimizer_state_bytes(self.optimizers().optimizer)
            meter.begin()

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return meter.loss(len(batch))

        def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
            meter.end(len(batch), self.optimizers().optimizer, self.state_bytes)

    trainer = pl.Trainer(
        accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    found = Tuner(trainer).scale_batch_size(Module(), mode="binsearch", margin=margin)
    return int(found or 0)


def run_incumbent(name: str, spec: RunSpec) -> dict[str, Any]:
    find: dict[str, Callable[[Meter], int]] = {
        "eights": eights,
        "autobatch": autobatch,
        "accelerate": accelerate,
        "lightning": lambda meter: lightning(meter, 0.05),
        "lightning-exact": lambda meter: lightning(meter, 0.0),
    }
    started = time.perf_counter()
    meter = Meter(spec)
    answer = find[name](meter)
    seconds = time.perf_counter() - started
    row = {"method": name, "answer": answer, "probes": meter.probes, "out_of_memory": meter.refused}
    return {**row, "samples": meter.samples, "wall_seconds": seconds}


def run_memorymark(spec: RunSpec, *, estimates: bool) -> dict[str, Any]:
    result = measure(spec, estimates=estimates)
    timings = result.timings
    searched = [p for p in result.probes if p.purpose in (Purpose.SEARCH, Purpose.CONFIRM)]
    name = "memorymark" if estimates else "memorymark-plain"
    row = {"method": name, "answer": result.boundary.largest_batch_size, "certified": result.boundary.certified}
    return {
        **row,
        "probes": len(searched),
        "out_of_memory": sum(not p.fits for p in searched),
        "samples": sum(p.batch_size * p.steps for p in searched),
        "wall_seconds": timings.total_seconds - timings.soak_seconds - timings.curve_seconds - timings.timing_seconds,
        "of_which_estimate_seconds": timings.estimate_seconds,
        "of_which_search_seconds": timings.search_seconds,
        "whole_run": {
            "probes": len(result.probes),
            "wall_seconds": timings.total_seconds,
            "soak_seconds": timings.soak_seconds,
            "curve_seconds": timings.curve_seconds,
            "timing_seconds": timings.timing_seconds,
            "timing_rounds": result.speed.rounds if result.speed else 0,
            "others_cores_while_timing": result.speed.others_cores if result.speed else None,
        },
        "sequence": [f"{p.batch_size}{'' if p.fits else 'x'}" for p in searched],
    }


def table(rows: list[dict[str, Any]], exact: int) -> str:
    lines = [
        "| method | answer | exact | probes | out of memory | samples | wall |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        word = "yes" if row["answer"] == exact else f"no ({row['answer'] / exact:.0%})"
        lines.append(
            f"| {row['method']} | {row['answer']} | {word} | {row['probes']} | {row['out_of_memory']} "
            f"| {row['samples']:,} | {row['wall_seconds']:.0f} s |"
        )
    return "\n".join(lines)


def goals(rows: list[dict[str, Any]], exact: int) -> str:
    """The search against the next exact method: at most half of its time is the goal."""
    ours = next(row for row in rows if row["method"] == "memorymark")
    rivals = [r for r in rows if r["answer"] == exact and not r["method"].startswith("memorymark")]
    next_exact = min(rivals, key=lambda row: row["wall_seconds"], default=None)
    if next_exact is None:
        return "no other method was exact"
    share = ours["wall_seconds"] / next_exact["wall_seconds"]
    whole = ours["whole_run"]["wall_seconds"]
    return f"search: {share:.0%} of {next_exact['method']}'s time (goal: at most 50%); whole run {whole:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="bert-tiny")
    parser.add_argument("--memory-limit", default="1836MiB")
    parser.add_argument("--output", default=str(ROOT / "benchmarks" / "results" / "search_cost.cpu.json"))
    parser.add_argument("--method", choices=(*METHODS, CHECK), help="run one, print its JSON")
    parser.add_argument("--size", type=int, default=0, help="what `check` looks at")
    options = parser.parse_args()
    spec = RunSpec(options.model, device="cpu", memory_limit_bytes=parse_bytes(options.memory_limit))
    if options.method == CHECK:
        meter = Meter(spec)
        sys.stdout.write("\n" + json.dumps([meter.fits(options.size), meter.fits(options.size + 1)]) + "\n")
        return
    if options.method:
        is_ours = options.method.startswith("memorymark")
        estimates = options.method == "memorymark"
        row = run_memorymark(spec, estimates=estimates) if is_ours else run_incumbent(options.method, spec)
        sys.stdout.write("\n" + json.dumps(row) + "\n")
        return
    base = [sys.executable, __file__, "--model", options.model, "--memory-limit", options.memory_limit]
    rows = []
    for method in METHODS:
        rows.append(last_line([*base, "--method", method]))
        print(json.dumps(rows[-1]), flush=True)
    exact = int(rows[0]["answer"])
    # the yardstick is checked by the meter all the others use, in a process of its own
    checked = last_line([*base, "--method", CHECK, "--size", str(exact)])
    report = {
        "model": spec.model,
        "memory_limit_bytes": spec.memory_limit_bytes,
        "exact": exact,
        "exact_fits_and_next_does_not": checked,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": {"platform": platform.platform(), "cpu_count": len(os.sched_getaffinity(0))},
        "rows": rows,
    }
    Path(options.output).write_text(json.dumps(report, indent=1) + "\n")
    print(table(rows, exact))
    print(goals(rows, exact))
    if checked != [True, False]:
        sys.exit(f"{exact} is not the boundary: {checked}")


def last_line(command: list[str]) -> Any:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.decode()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
