"""Whether a breakdown names the right module and kind: thirty out-of-memories whose cause was planted, so it is known.

Each case takes a model of the catalogue and plants one large thing in a module drawn by chance: weights, a gradient,
optimizer state, activations, temporaries of the forward or the backward pass, or a loss. Then it sets a limit that all
else fits below and the planted thing does not. Right is a breakdown that names its module, its kind and its phase: of
a gradient and of state as the refused request, of weights as that (an estimate refuses them while they are loaded) or
as the largest entry, and of all others as the largest entry, with the refused request at the same module in the same
phase. Both ways are judged: the measured one, by the allocator's events on the CPU, and the estimate, by the trace.

    python benchmarks/what_filled.py [--cases 30] [--first 0] [--seed 16] [--out benchmarks/results/what_filled.json]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.estimate.explain import what_fills
from engine.estimate.replay import CardConstants, PlainMemory
from engine.estimate.tracing.trace import conditions_for, record
from engine.facts.memory_breakdown import LOSS, MemoryBreakdown
from engine.measurement.attribution import attribute
from engine.measurement.device import Cpu
from engine.measurement.probe import Bench, run_probe
from engine.measurement.step import TrainingStep
from engine.measurement.workloads import Built, build
from engine.settings.spec import RunSpec
from engine.text.units import GIB, MIB

CHUNKS = 10
MODELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("bert-tiny", {"sequence_length": 16}),
    ("bert-tiny", {"sequence_length": 16, "precision": "bf16"}),
    ("bert-tiny", {"sequence_length": 16, "optimizer": "sgd"}),
    ("bert-tiny", {"sequence_length": 16, "gradient_checkpointing": True}),
    ("resnet18", {"image_size": 48}),
    ("resnet18", {"image_size": 48, "optimizer": "momentum"}),
)
BATCH_SIZE = 4


@dataclass(frozen=True)
class Truth:
    """What a breakdown must say: of its largest entry, or where that is not `largest` of the refused request."""

    kind: str
    module: str
    phase: str | None
    largest: bool = True


class _LargeBackward(torch.autograd.Function):
    """Passes its input through, and holds `size` floats in pieces while its gradient passes."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, size: int) -> Tensor:
        ctx.size = size
        return value.clone()  # a view would not stand what changes it in place

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        held = [gradients[0].new_zeros(ctx.size // CHUNKS) for _ in range(CHUNKS)]
        return gradients[0] + 0 * held[0].sum(), None


def keep_for_backward(value: Tensor, size: int) -> Tensor:
    """Return `value`; what is planted is saved by autograd, in pieces."""
    total = value.float().mean()
    for _ in range(CHUNKS):
        total = total + total.detach().new_zeros(size // CHUNKS).add(total).square().mean()
    return value + 0 * total.to(value.dtype)


def hold_for_a_moment(value: Tensor, size: int) -> Tensor:
    held = [value.detach().new_zeros(size // CHUNKS) for _ in range(CHUNKS)]
    return value + 0 * held[0].sum()


PLANTED: dict[str, tuple[Callable[[Tensor, int], Tensor], str, str]] = {
    "activations": (keep_for_backward, "activations", "forward"),
    "forward temporary": (hold_for_a_moment, "temporaries", "forward"),
    "backward temporary": (lambda value, size: _LargeBackward.apply(value, size), "temporaries", "backward"),
}
CAUSES = ("weights", "gradient", "optimizer state", *PLANTED, "loss")


def plant(built: Built, cause: str, path: str, size: int) -> Built:
    """Return the workload with `size` floats of the cause planted at `path`."""
    if cause == "loss":
        usual = built.loss
        return replace(built, loss=lambda outputs, batch: keep_for_backward(usual(outputs, batch), size))
    module = built.model.get_submodule(path)
    forward = module.forward
    if cause in PLANTED:
        function = PLANTED[cause][0]
        module.forward = lambda *args, **kwargs: function(forward(*args, **kwargs), size)  # type: ignore[method-assign]
        return built
    planted = nn.Parameter(torch.zeros(size))
    module.register_parameter("planted", planted)
    module.forward = lambda *args, **kwargs: forward(*args, **kwargs) + 0 * planted[:1]  # type: ignore[method-assign]
    return built


def truth_of(cause: str, path: str) -> Truth:
    if cause == "weights":
        return Truth("parameters", path, None)
    if cause == "gradient":
        return Truth("gradients", path, "backward", largest=False)
    if cause == "optimizer state":
        return Truth("optimizer_state", path, "optimizer_step", largest=False)
    if cause == "loss":
        return Truth("activations", LOSS, "forward")
    _, kind, phase = PLANTED[cause]
    return Truth(kind, path, phase)


def limit_for(cause: str, built: Built, spec: RunSpec, natural_bytes: int, size: int) -> int:
    """Return a limit that everything fits below but the planted thing, and of that about half."""
    planted_bytes = 4 * size
    if cause in ("weights", "gradient", "optimizer state"):
        weights = sum(t.nbytes for t in (*built.model.parameters(), *built.model.buffers()))
        if cause == "weights":
            return weights - planted_bytes // 2
        gradients = sum(t.nbytes for t in built.model.parameters())
        # what the step makes besides them, at most: the peak without anything planted
        return {
            "gradient": weights + natural_bytes + planted_bytes // 2,
            "optimizer state": weights + gradients + natural_bytes + planted_bytes // 2,
        }[cause]
    return natural_bytes + planted_bytes // 2


def is_right(found: MemoryBreakdown, truth: Truth) -> bool:
    """Whether the refusal names the planted thing."""
    if found.moment != "refusal" or not found.entries:
        return False
    request, largest = found.request, found.entries[0]
    expected = (truth.kind, truth.module, truth.phase)
    is_requested = (request.kind, request.module, request.phase) == expected
    is_largest = (largest.kind, largest.module, largest.phase) == expected
    if truth.kind == "parameters":
        return is_requested or is_largest
    if not truth.largest:
        return is_requested
    return is_largest and (request.module, request.phase) == (truth.module, truth.phase)


def candidates(built: Built) -> list[str]:
    """Return the paths of the leaves with weights: they take one tensor and return one."""
    chosen = (nn.Linear, nn.LayerNorm, nn.Conv2d, nn.BatchNorm2d)
    return [path for path, module in built.model.named_modules() if isinstance(module, chosen)]


def run_case(number: int, cause: str, rng: random.Random) -> dict[str, Any]:
    """Plant one cause and judge both breakdowns."""
    model, settings = rng.choice(MODELS)
    if cause == "optimizer state":
        model, settings = rng.choice([m for m in MODELS if m[1].get("optimizer", "adamw") in ("adamw", "momentum")])
    spec = RunSpec(model, device="cpu", **settings)
    cpu = torch.device("cpu")
    device = Cpu(cpu)
    device.limit_bytes = 16 * GIB
    torch.manual_seed(number)
    natural = build(spec, cpu)
    path = rng.choice(candidates(natural))
    natural_bytes = run_probe(Bench(spec, device, natural), BATCH_SIZE, with_kinds=False).peak_allocated_bytes
    assert natural_bytes is not None
    size = (2 * natural_bytes // 4 + rng.randrange(8 * MIB)) // CHUNKS * CHUNKS
    torch.manual_seed(number)
    built = plant(build(spec, cpu), cause, path, size)
    limit = device.limit_bytes = limit_for(cause, built, spec, natural_bytes, size)
    truth = truth_of(cause, path)
    measured = attribute(Bench(spec, device, built), BATCH_SIZE, steps=3)
    assert measured is not None
    before = time.perf_counter()
    at = conditions_for(None, spec.precision)
    recording = record(lambda on: TrainingStep(spec, plant(build(spec, on), cause, path, size), on), BATCH_SIZE, at)
    estimated = what_fills(recording, PlainMemory(), CardConstants(), limit)
    return {
        "case": number,
        "cause": cause,
        "model": model,
        "settings": settings,
        "planted_at": truth.module,
        "planted_bytes": 4 * size,
        "limit_bytes": limit,
        "truth": asdict(truth),
        "measured": judged(measured, truth),
        "estimated": judged(estimated, truth) | {"seconds": round(time.perf_counter() - before, 2)},
        "totals_agree": measured.total_bytes == estimated.total_bytes,
    }


def judged(found: MemoryBreakdown, truth: Truth) -> dict[str, Any]:
    return {
        "is_right": is_right(found, truth),
        "request": asdict(found.request),
        "largest": asdict(found.entries[0]) if found.entries else None,
        "unattributed_bytes": sum(entry.size_bytes for entry in found.entries if entry.kind == "unattributed"),
        "adds_up": sum(entry.size_bytes for entry in found.entries) == found.total_bytes,
        "seconds": found.seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case, to run them in parts")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cases: list[dict[str, Any]] = []
    for number in range(options.first, options.first + options.cases):
        case = run_case(number, CAUSES[number % len(CAUSES)], random.Random(f"{options.seed} {number}"))
        cases.append(case)
        marks = ["right" if case[way]["is_right"] else "WRONG" for way in ("measured", "estimated")]
        print(f"{number:2} {case['cause']:<18} {case['model']:<10} {case['planted_at']:<50} {marks}", flush=True)
        if options.out:
            document = {"summary": summary_of(cases, options.seed), "cases": cases}
            options.out.write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(summary_of(cases, options.seed)))


def summary_of(cases: list[dict[str, Any]], seed: int) -> dict[str, Any]:
    return {
        "cases": len(cases),
        "measured_right": sum(case["measured"]["is_right"] for case in cases),
        "estimated_right": sum(case["estimated"]["is_right"] for case in cases),
        "totals_that_agree": sum(case["totals_agree"] for case in cases),
        "adding_up": sum(case[way]["adds_up"] for case in cases for way in ("measured", "estimated")),
        "most_unattributed_bytes": max(case["measured"]["unattributed_bytes"] for case in cases),
        "torch": torch.__version__,
        "seed": seed,
    }


if __name__ == "__main__":
    main()
