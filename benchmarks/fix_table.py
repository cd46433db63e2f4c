"""Measures what each setting gains, and compares it with the estimate: small BERT, GPT-2 and ResNet on a CPU budget.

Each change of one setting that the engine would advise is a row. It has the largest batch size as estimated and as
measured, where that size trains and the next one must run out of memory. It also has the ratio of speeds to the
training as requested, with its 95 % interval: both train the largest batch size that the training as requested fits,
in rounds of one step of each in random order. The GPT-2 has two layers and is 128 wide: the catalogue's smallest takes
too long on a CPU. Rows that exist already are not run again.

    python benchmarks/fix_table.py [--seconds 150] [--model bert] [--table]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.first_advice import trained
from engine.estimate.alternatives import changed, label_of, single_changes
from engine.estimate.estimator import Estimator
from engine.facts.intervals import interval
from engine.facts.result import Outcome
from engine.measurement.step import TrainingStep, apply_precision
from engine.measurement.workloads import build
from engine.settings.catalog import WORKLOADS
from engine.settings.spec import RunSpec
from engine.text.units import MIB

OUT = Path(__file__).parent / "results" / "fix_table.cpu.jsonl"
SMALL_GPT2 = {"n_layer": 2, "n_embd": 128, "n_head": 2, "vocab_size": 8192, "pad_token_id": 8191}
SPECS = {
    "bert": RunSpec("bert-tiny", device="cpu", sequence_length=64, memory_limit_bytes=112 * MIB),
    "gpt2": RunSpec("gpt2", device="cpu", sequence_length=64, memory_limit_bytes=2200 * MIB),
    "resnet": RunSpec("resnet18", device="cpu", image_size=64, memory_limit_bytes=256 * MIB),
}
ROUNDS = 8
GPT2_LIMIT_BYTES = 48 * MIB


def small_gpt2() -> RunSpec:
    """Put a GPT-2 of two layers in the place of the catalogue's, for this process."""
    usual = WORKLOADS["gpt2"]
    config = {**usual.config, **SMALL_GPT2}
    WORKLOADS["gpt2"] = replace(usual, config=config, vocabulary_size=8192, parameter_count=1_500_000)
    return replace(SPECS["gpt2"], memory_limit_bytes=GPT2_LIMIT_BYTES)


def measured_largest(spec: RunSpec, guess: int, limit_bytes: int) -> int:
    """Return the size that trains while the next one runs out of memory, from the estimated one on."""
    fits = partial(_fits, spec, limit_bytes)
    size = max(guess, 1)
    if fits(size):
        while fits(size + 1):
            size += 1
        return size
    while size > 1 and not fits(size - 1):
        size -= 1
    return size - 1


def _fits(spec: RunSpec, limit_bytes: int, batch_size: int) -> bool:
    found = trained(spec, batch_size, limit_bytes)
    if found.outcome not in (Outcome.FITS, Outcome.OUT_OF_MEMORY):
        raise RuntimeError(f"batch {batch_size} of {spec.model}: {found.error_message}")
    return found.outcome is Outcome.FITS


def speed_ratio(spec: RunSpec, base: RunSpec, batch_size: int) -> dict[str, Any]:
    """Run one step of each in turns, in random order; the ratio of samples per second with its interval."""
    rng = random.Random(0)
    pair = [_stepper(base), _stepper(spec)]
    for step in pair:
        for _ in range(2):
            step(batch_size)
    logarithms = []
    for _ in range(ROUNDS):
        seconds = {}
        for index in rng.sample((0, 1), 2):
            seconds[index] = min(_timed(pair[index], batch_size) for _ in range(2))
        logarithms.append(math.log(seconds[0] / seconds[1]))
    found = interval(logarithms).exp()
    return {"low": round(found.low, 3), "value": round(found.value, 3), "high": round(found.high, 3)}


def _timed(step: Any, batch_size: int) -> float:
    started = time.perf_counter()
    step(batch_size)
    return time.perf_counter() - started


def _stepper(spec: RunSpec) -> Any:
    apply_precision(spec.precision)
    step = TrainingStep(spec, build(spec, torch.device("cpu")), torch.device("cpu"))

    def run(batch_size: int) -> None:
        step.clear_gradients()
        step(batch_size)

    return run


def estimated_largest(spec: RunSpec) -> int:
    return Estimator(spec).estimates([None])[0].largest_batch_size


def main() -> None:
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler of each probe would write lines
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no row after this time")
    parser.add_argument("--model", choices=list(SPECS), help="only this one")
    parser.add_argument("--table", action="store_true", help="print what was measured, as Markdown")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    if options.table:
        print("\n".join(table(rows)))
        return
    ends_at = time.monotonic() + options.seconds
    for name in [options.model] if options.model else SPECS:
        spec = small_gpt2() if name == "gpt2" else SPECS[name]
        for changes in [(), *single_changes(spec)]:
            label = label_of(changes)
            if any((row["model"], row["change"]) == (name, label) for row in rows):
                continue
            if time.monotonic() > ends_at:
                return
            base = next((row for row in rows if (row["model"], row["change"]) == (name, "as requested")), None)
            rows.append(_row(name, label, spec, changes, base))
            with options.out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(json.dumps(rows[-1]), flush=True)


def _row(name: str, label: str, spec: RunSpec, changes: Any, base: dict[str, Any] | None) -> dict[str, Any]:
    row: dict[str, Any] = {"model": name, "change": label, "torch": torch.__version__}
    try:
        other = changed(spec, changes)
        estimated = estimated_largest(other)
    except Exception as exc:  # noqa: BLE001 - the row stores the reason
        return {**row, "left_out": f"{type(exc).__name__}: {str(exc)[:200]}"}
    limit = spec.memory_limit_bytes or 0
    largest = measured_largest(other, estimated, limit)
    row |= {"limit_bytes": limit, "estimated_largest": estimated, "measured_largest": largest}
    if base is not None and changes:
        size = base["measured_largest"]
        row |= {
            "batch_ratio": round(largest / size, 3),
            "estimated_ratio": round(estimated / base["estimated_largest"], 3),
        }
        row |= {"speed_at_batch": size, "speed_ratio": speed_ratio(other, spec, size)}
    return row


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| model | change | largest, estimated | measured | gain in batch | speed [95 %] |",
        "|---|---|---:|---:|---:|---|",
    ]
    for row in rows:
        if "left_out" in row:
            lines.append(f"| {row['model']} | {row['change']} | left out: {row['left_out']} | | | |")
            continue
        speed = row.get("speed_ratio")
        spoken = f"{speed['value']:.2f}x [{speed['low']:.2f}, {speed['high']:.2f}]" if speed else ""
        gain = f"{row['batch_ratio']:.2f}x" if "batch_ratio" in row else ""
        cells = (row["model"], row["change"], row["estimated_largest"], row["measured_largest"], gain, spoken)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


if __name__ == "__main__":
    main()
