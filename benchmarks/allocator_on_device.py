"""The simulated allocator and the eight predictions against a real GPU, as JSON.

    python benchmarks/allocator_on_device.py [--device cuda:0] [--patterns 20] [--events 600] [--output FILE]
    python benchmarks/allocator_on_device.py --patterns-of expandable
    python benchmarks/allocator_on_device.py --prediction-of "bert-base b32 s128" fp32

Patterns: random allocations and frees, event for event. After each event the bytes allocated, reserved and asked for
and the retries of `torch.cuda.memory_stats()` must equal the simulation's: by default without a limit and with one, and
with expandable segments without one (under a limit those may exceed it by part of a page, which the simulation never
does). Predictions: four workloads in two precisions, the peaks of three steps in a
fresh process beside what is predicted for this card; each miss above 2 % wants an explanation, and `EXPLAINED_MISSES`
has those that are known. The process that predicts never touches the card, and is told what it is: otherwise the
method would be another one than that of `python -m engine estimate`.

The file is written again after each part, so that a run that is cut short leaves what it had. Ends with status 1 where
a pattern differs, a prediction missed by more than 2 % without an explanation, or was made by another method.

Needs a CUDA GPU with nobody else on it; ends with status 4 where there is none. Not run yet: no GPU was at hand.
Each part is a process of its own: a failed allocation spoils the next one, and settings are read at the start.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from predicted_workloads import PRECISIONS, PREDICTED

from engine.estimate.allocator import Allocator, OutOfMemory
from engine.estimate.gpus import Gpu
from engine.estimate.prior import card_of
from engine.estimate.tracing.hidden_devices import devices_hidden
from engine.facts.result import DeviceFacts
from engine.measurement.step import apply_precision
from engine.settings.spec import MEMORY_STEPS
from engine.text.units import KIB, MIB

EXIT_NO_GPU = 4
EXPLAIN_ABOVE = 0.02
TESTED_METHOD = "fake_cuda"
EXPLAINED_MISSES = {"resnet50 b64 224": (-0.06, "cuDNN takes workspaces of up to 6 % that no trace sees")}
"""For a workload how much less may be predicted than is measured, and why."""
PATTERN_KINDS = {
    "plain": {"is_expandable": False, "is_limited": False},
    "limited": {"is_expandable": False, "is_limited": True},
    "expandable": {"is_expandable": True, "is_limited": False},
}
PATTERN_LIMIT_BYTES = 600 * MIB
SIZES = (1, 511, 512, 513, 6 * KIB, MIB - 1, MIB, MIB + 1, 3 * MIB, 9 * MIB, 10 * MIB, 23 * MIB, 64 * MIB, 150 * MIB)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--patterns", type=int, default=20)
    parser.add_argument("--events", type=int, default=600)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--patterns-of", choices=PATTERN_KINDS, help="these patterns alone, as one JSON document")
    parser.add_argument("--prediction-of", nargs=2, metavar=("WORKLOAD", "PRECISION"), help="this prediction alone")
    parser.add_argument("--part", type=json.loads, help=argparse.SUPPRESS)  # what a process of ours shall do
    options = parser.parse_args()
    if options.part is not None:
        print(json.dumps(_PARTS[options.part.pop("do")](device=torch.device(options.device), **options.part)))
        return 0
    if not torch.cuda.is_available():
        sys.stderr.write(f"error: this needs a CUDA GPU, and torch {torch.__version__} finds none here\n")
        return EXIT_NO_GPU
    if options.patterns_of or options.prediction_of:
        return one_alone(options)
    report = whole_report(options)
    print(json.dumps(report, indent=1) if options.output is None else summary(report))
    return int(not (all(map(agrees, report["patterns"])) and all(map(is_explained, report["predictions"]))))


def one_alone(options: argparse.Namespace) -> int:
    """Print one part of the report in a line; its exit status."""
    if options.patterns_of:
        row = part_alone(options.device, pattern_part(options, options.patterns_of))
        is_good = agrees(row)
    else:
        card = part_alone(options.device, {"do": "machine"})
        row = beside_each_other(options.device, card, *options.prediction_of)
        is_good = is_explained(row)
    print(json.dumps(row))
    return int(not is_good)


def whole_report(options: argparse.Namespace) -> dict[str, Any]:
    """All parts. The file, if one is named, holds after each what there is so far."""
    card = part_alone(options.device, {"do": "machine"})
    report: dict[str, Any] = {"machine": card, "patterns": [], "predictions": []}

    def keep(kind: str, row: dict[str, Any]) -> None:
        report[kind].append(row)
        if options.output is not None:
            options.output.write_text(json.dumps(report, indent=1) + "\n")

    for kind in PATTERN_KINDS:
        keep("patterns", part_alone(options.device, pattern_part(options, kind)))
    for name in PREDICTED:
        for precision in PRECISIONS:
            keep("predictions", beside_each_other(options.device, card, name, precision))
    return report


def pattern_part(options: argparse.Namespace, kind: str) -> dict[str, Any]:
    return {"do": "patterns", "count": options.patterns, "events": options.events, **PATTERN_KINDS[kind]}


def agrees(row: dict[str, Any]) -> bool:
    """Whether real and simulated allocator said the same in every pattern."""
    return not row["differences"]


def is_explained(row: dict[str, Any]) -> bool:
    """Whether the prediction is of the tested method, and as near as it should be."""
    return row["predicted"]["method"] == TESTED_METHOD and not row["wants_an_explanation"]


def wants_an_explanation(name: str, errors: dict[str, float]) -> bool:
    """PURE: whether a peak is more than 2 % off, and not by what is known of this workload."""
    least, _ = EXPLAINED_MISSES.get(name, (-EXPLAIN_ABOVE, ""))
    return not all(least <= error <= EXPLAIN_ABOVE for error in errors.values())


def part_alone(device: str, part: dict[str, Any]) -> dict[str, Any]:
    """One part in a fresh process, with the allocator's settings it is about."""
    settings = f"expandable_segments:{bool(part.get('is_expandable'))}"
    command = [sys.executable, __file__, "--device", device, "--part", json.dumps(part)]
    environment = {**os.environ, "PYTORCH_ALLOC_CONF": settings, "PYTORCH_CUDA_ALLOC_CONF": settings}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{part} ended with status {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def machine(device: torch.device) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(device)
    return {
        "gpu": properties.name,
        "total_bytes": properties.total_memory,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
    }


@dataclass(frozen=True)
class Figures:
    """What both sides say after an event."""

    allocated_bytes: int
    reserved_bytes: int
    requested_bytes: int
    retries: int


def patterns(device: torch.device, is_expandable: bool, is_limited: bool, count: int, events: int) -> dict[str, Any]:
    """Random patterns on both sides; the first difference of each pattern is kept."""
    limit_bytes = None
    if is_limited:
        total_bytes = torch.cuda.get_device_properties(device).total_memory
        fraction = PATTERN_LIMIT_BYTES / total_bytes
        limit_bytes = int(fraction * total_bytes)  # as the allocator computes it
        torch.cuda.set_per_process_memory_fraction(fraction, device)
    found = [difference_in_pattern(device, seed, events, is_expandable, limit_bytes) for seed in range(count)]
    return {
        "is_expandable": is_expandable,
        "limit_bytes": limit_bytes,
        "patterns": count,
        "events_each": events,
        "differences": [difference for difference in found if difference is not None],
    }


def difference_in_pattern(
    device: torch.device, seed: int, events: int, is_expandable: bool, limit_bytes: int | None
) -> dict[str, Any] | None:
    chance = random.Random(seed)
    torch.cuda.empty_cache()
    retries_before = real_figures(device, 0).retries
    simulated, tensors = Allocator(limit_bytes=limit_bytes, expandable_segments=is_expandable), {}
    for number in range(events):
        event = next_event(chance, sorted(tensors))
        outcomes = play_real(device, tensors, number, event), play_simulated(simulated, number, event)
        if outcomes[1] == "out of memory":
            tensors.pop(number, None)
        real = real_figures(device, retries_before)
        said = Figures(
            simulated.allocated_bytes, simulated.reserved_bytes, simulated.requested_bytes, simulated.retries
        )
        if outcomes[0] != outcomes[1] or real != said:
            return {"seed": seed, "number": number, "event": event, "outcomes": outcomes, "real": vars(real)} | {
                "simulated": vars(said)
            }
    return None


def next_event(chance: random.Random, live: list[int]) -> tuple[str, int]:
    """Allocate a size, free a key, or empty the cache. Frees are likelier the more is live."""
    if chance.random() < 0.02:
        return "empty", 0
    if live and chance.random() < min(0.75, len(live) / 40):
        return "free", chance.choice(live)
    size = chance.choice(SIZES)
    return "allocate", size if chance.random() < 0.5 else max(1, int(size * chance.uniform(0.5, 1.5)))


def play_real(device: torch.device, tensors: dict[int, torch.Tensor], key: int, event: tuple[str, int]) -> str:
    what, argument = event
    if what == "empty":
        torch.cuda.empty_cache()
    elif what == "free":
        del tensors[argument]
    else:
        try:
            tensors[key] = torch.empty(argument, dtype=torch.uint8, device=device)
        except torch.OutOfMemoryError:
            return "out of memory"
    return "done"


def play_simulated(simulated: Allocator, key: int, event: tuple[str, int]) -> str:
    what, argument = event
    if what == "empty":
        simulated.empty_cache()
    elif what == "free":
        simulated.free(argument)
    else:
        try:
            simulated.allocate(key, argument)
        except OutOfMemory:
            return "out of memory"
    return "done"


def real_figures(device: torch.device, retries_before: int) -> Figures:
    counted = torch.cuda.memory_stats(device)
    return Figures(
        allocated_bytes=counted.get("allocated_bytes.all.current", 0),
        reserved_bytes=counted.get("reserved_bytes.all.current", 0),
        requested_bytes=counted.get("requested_bytes.all.current", 0),
        retries=counted.get("num_alloc_retries", 0) - retries_before,
    )


def measured(device: torch.device, name: str, precision: str) -> dict[str, int]:
    """The peaks of a few full steps, as a probe takes them."""
    workload = PREDICTED[name]
    apply_precision(precision)
    step = workload.make_step(precision)(device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    for _ in range(MEMORY_STEPS):
        step.clear_gradients()
        step(workload.batch_size)
    torch.cuda.synchronize(device)
    free_bytes, total_bytes = torch.cuda.mem_get_info(device)
    return {
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(device),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(device),
        "device_used_bytes": total_bytes - free_bytes,
    }


def predicted(device: torch.device, card: dict[str, Any], name: str, precision: str) -> dict[str, Any]:
    """The same, predicted for this card from what `machine` said of it. Nothing runs on it."""
    from engine.estimate import predict
    from engine.estimate.tracing import trace

    workload, gpu = PREDICTED[name], gpu_of(card)
    with devices_hidden():
        apply_precision(precision)
        conditions = trace.conditions_for(gpu, precision)
        model = trace.model_of_steps(workload.make_step(precision), conditions)
    at = predict.estimate_at(model, gpu, workload.batch_size)
    return {
        "card": gpu.id,
        "method": conditions.method,
        "approximate_because": conditions.approximate_because,
        "phase": at.phase,
        "operator": at.operator,
        "peak_allocated_bytes": at.peak_allocated_bytes,
        "peak_reserved_bytes": at.peak_reserved_bytes,
        "device_used_bytes": at.device_used_bytes,
    }


def gpu_of(card: dict[str, Any]) -> Gpu:
    """By whose rules it is predicted: the catalogue's, or those of its own capability."""
    facts = DeviceFacts(
        "cuda:0", "cuda", card["gpu"], card["total_bytes"], compute_capability=card["compute_capability"]
    )
    gpu = card_of(facts)
    assert gpu is not None
    return gpu


def beside_each_other(device: str, card: dict[str, Any], name: str, precision: str) -> dict[str, Any]:
    task = {"name": name, "precision": precision}
    real = part_alone(device, {"do": "measured", **task})
    said = part_alone(device, {"do": "predicted", "card": card, **task})
    errors = {key: said[key] / real[key] - 1 for key in ("peak_allocated_bytes", "peak_reserved_bytes")}
    return {
        **task,
        "measured": real,
        "predicted": said,
        "sketched_for_h100_mib": PREDICTED[name].sketched_mib[precision],
        "errors": errors,
        "wants_an_explanation": wants_an_explanation(name, errors),
        "explanation": EXPLAINED_MISSES.get(name, (0, None))[1],
    }


def summary(report: dict[str, Any]) -> str:
    lines = [f"{report['machine']['gpu']}, torch {report['machine']['torch']}"]
    for part in report["patterns"]:
        kind = "expandable" if part["is_expandable"] else "default"
        limit = "no limit" if part["limit_bytes"] is None else "limited"
        lines.append(f"{kind}, {limit}: {len(part['differences'])} of {part['patterns']} patterns differ")
    for row in report["predictions"]:
        errors = ", ".join(f"{key} {error:+.2%}" for key, error in row["errors"].items())
        lines.append(f"{row['name']} {row['precision']}: {errors}")
    return "\n".join(lines)


_PARTS = {"machine": machine, "patterns": patterns, "measured": measured, "predicted": predicted}

if __name__ == "__main__":
    sys.exit(main())
