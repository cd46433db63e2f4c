"""Whether the first advice after an out-of-memory really trains: seeded out-of-memories, advised and then trained.

Each case draws a model, settings and a batch size, measures what the batch takes, and sets a limit below that by
chance: the batch runs out of memory. Then the engine estimates the smallest change, and the very training
that it names runs at the wanted batch size below the limit: gradient accumulation with all its micro-batches. In every
tenth case the first advice that changes a setting is trained as well, because smaller micro-batches help so often
that they hide it. Right is what trained all its steps. Rows that are there already are not run again.

    python benchmarks/first_advice.py [--first 0] [--cases 30] [--seed 16] [--seconds 150]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.estimate.estimator import Estimator
from engine.estimate.what_to_change import Evaluated, Scope, Variant, WhatToChange, what_to_change
from engine.facts.result import Outcome, Probe
from engine.measurement import probe
from engine.measurement.device import Cpu
from engine.measurement.workloads import build
from engine.settings.spec import RunSpec
from engine.text.units import GIB

SETTING_EVERY = 10
OUT = Path(__file__).parent / "results" / "first_advice.cpu.jsonl"
MODELS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("bert-tiny", "sequence_length", (32, 48, 64)),
    ("bert-tiny", "sequence_length", (64,)),
    ("resnet18", "image_size", (40, 48)),
)


def trained(spec: RunSpec, batch_size: int, limit_bytes: int) -> Probe:
    """Train a few optimizer steps below the limit. With accumulation, `batch_size` is that of a micro-batch."""
    torch.manual_seed(0)
    device = Cpu(torch.device("cpu"))
    device.limit_bytes = limit_bytes
    bench = probe.Bench(spec, device, build(spec, torch.device("cpu")))
    return probe.run_probe(bench, batch_size, with_kinds=False)


def drawn(number: int, rng: random.Random) -> tuple[RunSpec, int, int]:
    """Draw a training below a limit, a batch size, and measure what that takes: more than the limit."""
    model, size_name, sizes = rng.choice(MODELS)
    settings: dict[str, Any] = {
        "precision": rng.choice(("fp32", "fp32", "bf16")),
        "optimizer": rng.choice(("adamw", "adamw", "momentum", "sgd")),
        size_name: rng.choice(sizes),
    }
    spec = RunSpec(model, device="cpu", **settings)
    batch_size = rng.choice((20, 24, 30, 32, 40, 48))
    most = trained(spec, batch_size, 16 * GIB).peak_allocated_bytes
    assert most is not None
    limit_bytes = int(spec.fixed_bytes + rng.uniform(0.2, 0.95) * (most - spec.fixed_bytes))
    return replace(spec, memory_limit_bytes=limit_bytes, current_batch_size=batch_size), batch_size, most


def run_case(number: int, rng: random.Random) -> dict[str, Any]:
    spec, batch_size, most = drawn(number, rng)
    limit_bytes = spec.memory_limit_bytes or 0
    started = time.perf_counter()
    estimator = Estimator(spec)
    estimator.estimates([None], (batch_size,), Scope.FIRST)
    first = estimator.answers["what_to_change"]
    assert isinstance(first, WhatToChange)
    row: dict[str, Any] = {
        "case": number,
        "spec": {name: value for name, value in spec.to_dict().items() if value != getattr(RunSpec(spec.model), name)},
        "batch_size": batch_size,
        "limit_bytes": limit_bytes,
        "requested_bytes": most,  # above the limit: below it, this training runs out of memory
        "advice_seconds": round(time.perf_counter() - started, 1),
        "first": _judged(spec, first.advised[:1], limit_bytes),
    }
    if number % SETTING_EVERY == 0:
        row["first_setting"] = _judged(spec, _first_setting(spec, batch_size), limit_bytes)
    return row


def _first_setting(spec: RunSpec, batch_size: int) -> list[Variant]:
    """Return the first advice where gradients cannot be accumulated: then a setting has to change."""

    def evaluate(other: RunSpec) -> Evaluated:
        made = Estimator(other)
        (estimate,) = made.estimates([None], (batch_size,))
        replays = made._replays_for(None)
        return Evaluated(replace(estimate, safe_batch_size=0), partial(replays.peak_bytes, None))  # no micro-batch

    return what_to_change(spec, batch_size, evaluate, Scope.FIRST).advised[:1]


def _judged(spec: RunSpec, advised: list[Variant], limit_bytes: int) -> dict[str, Any]:
    """Train what the advice names."""
    if not advised:
        return {"advice": None, "trains": False}
    advice = advised[0]
    size = advice.micro_batch_size or advice.batch_size
    changed = replace(spec, **advice.settings, accumulation_steps=advice.batch_size // size)
    found = trained(changed, size, limit_bytes)
    return {
        "advice": advice.label,
        "trains": found.outcome is Outcome.FITS,
        "estimated_bytes": advice.memory_bytes,
        "measured_bytes": found.peak_allocated_bytes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after this time")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    rows = {row["case"]: row for row in map(json.loads, lines)}
    ends_at = time.monotonic() + options.seconds
    for number in range(options.first, options.first + options.cases):
        if number in rows or time.monotonic() > ends_at:
            continue
        rows[number] = run_case(number, random.Random(f"{options.seed} {number}"))
        with options.out.open("a") as file:
            file.write(json.dumps(rows[number]) + "\n")
        print(json.dumps(rows[number]), flush=True)
    for name in ("first", "first_setting"):
        judged = [row[name] for row in rows.values() if name in row]
        print(f"{name}: {sum(each['trains'] for each in judged)} of {len(judged)} trained")
    print(f"did not fit before: {sum(row['requested_bytes'] > row['limit_bytes'] for row in rows.values())}")


if __name__ == "__main__":
    main()
