"""How far predictions are from measurements: published GPU peaks, real steps on the CPU, and what still waits.

    python benchmarks/prediction_error.py [--part measured|cpu|waiting] [--output FILE]

measured  the ten runs of data/measured_peaks.json beside xMem's estimates of the same runs. A run's figure is what
          NVML rose by; the prediction is the allocator's reserved bytes, without whatever the context grew by.
cpu       peaks of real steps by the allocator's own events (`probe.profiled_step`), for every workload of the
          catalogue that is small enough and can be estimated there, and for every setting that changes memory. Left out
          are convolutions in fp16: there one step of a CPU takes minutes. Libraries choose other kernels, with other
          scratch memory, on another processor: rows of others stay in FILE, and the worst of a case counts.
waiting   the eight predictions for an H100 that nobody has measured yet, beside the first sketch's figures.

Nothing in the engine is fitted to these runs. Needs no GPU; `cpu` takes some minutes, the others one each.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import torch  # noqa: E402
from measured_models import is_language, step_maker  # noqa: E402
from predicted_workloads import PREDICTED  # noqa: E402

from engine.estimate import gpus  # noqa: E402
from engine.estimate.batch_model import RetracedModel  # noqa: E402
from engine.estimate.predict import estimate_at  # noqa: E402
from engine.estimate.stored.stored_traces import versions  # noqa: E402
from engine.estimate.tracing import trace  # noqa: E402
from engine.estimate.types import EstimateAt  # noqa: E402
from engine.measurement.device import Cpu  # noqa: E402
from engine.measurement.probe import Bench, profiled_step  # noqa: E402
from engine.measurement.step import TrainingStep  # noqa: E402
from engine.measurement.workloads import build  # noqa: E402
from engine.settings.spec import MEMORY_STEPS, RunSpec  # noqa: E402
from engine.text.units import MIB  # noqa: E402

MEASURED = ROOT / "benchmarks" / "data" / "measured_peaks.json"
CARDS = {"RTX 3060 12GB": "rtx-3060-12gb", "A100-SXM4-40GB": "a100-40gb"}
PARTS = ("measured", "cpu", "waiting")
_CPU = dict(re.findall(r"^(model name|model|stepping)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE))
PROCESSOR = f"{_CPU['model name']}, model {_CPU['model']}, stepping {_CPU['stepping']}"

TINY: dict[str, Any] = {"model": "bert-tiny", "sequence_length": 64}
IN_4_BITS: dict[str, Any] = {"sequence_length": 64, "lora_rank": 8, "load_in_4bit": True}
CPU_CASES: list[tuple[int, dict[str, Any]]] = [
    (64, {**TINY}),
    (64, {**TINY, "mode": "eval"}),
    (64, {**TINY, "gradient_checkpointing": True}),
    *((64, {**TINY, "precision": precision}) for precision in ("bf16", "fp16")),
    *((64, {**TINY, "precision": precision, "mode": "eval"}) for precision in ("bf16", "fp16")),
    *((64, {**TINY, "optimizer": optimizer}) for optimizer in ("none", "sgd", "momentum")),
    (1, {**TINY}),
    (8, {"model": "bert"}),
    (2, {"model": "bert", "gradient_checkpointing": True, "precision": "bf16"}),
    (4, {"model": "gpt2"}),
    (2, {"model": "gpt2", "sequence_length": 256}),
    (8, {"model": "distilbert"}),
    (2, {"model": "vit_b_16"}),
    (4, {"model": "resnet"}),
    (4, {"model": "resnet", "optimizer": "sgd"}),
    (2, {"model": "resnet", "precision": "bf16"}),
    (8, {"model": "resnet18"}),
    (4, {"model": "resnet18", "mode": "eval"}),
    (4, {"model": "resnet18", "image_size": 64, "optimizer": "momentum"}),
    (4, {"model": "resnet18", "precision": "bf16"}),
    *((2, {"model": model, "sequence_length": 32}) for model in ("roberta", "deberta-v3", "modernbert", "t5-small")),
    *((2, {"model": model, "sequence_length": 64}) for model in ("gpt2-lm", "pythia-160m", "gemma-3-270m")),
    (1, {"model": "qwen2.5-0.5b", "sequence_length": 64, "optimizer": "sgd"}),
    (1, {"model": "whisper-tiny", "sequence_length": 32}),
    (2, {"model": "clip-vit-b-32"}),
    *((2, {"model": m, "image_size": 96}) for m in ("swin-t", "efficientnet-b0", "mobilenet-v3-large")),
    *((64, {**TINY, "optimizer": optimizer}) for optimizer in ("adamw-fused", "adagrad", "adafactor")),
    *((2, {"model": model, "sequence_length": 32, "lora_rank": 8}) for model in ("bert", "roberta", "t5-small")),
    *((2, {"model": m, "sequence_length": 64, "lora_rank": 8}) for m in ("gpt2-lm", "pythia-160m", "gemma-3-270m")),
    (1, {"model": "qwen2.5-0.5b", "sequence_length": 64, "lora_rank": 16}),
    (2, {"model": "bert", "sequence_length": 32, "lora_rank": 8, "precision": "bf16"}),
    (2, {"model": "gpt2-lm", "sequence_length": 64, "lora_rank": 8, "gradient_checkpointing": True}),
    *((2, {"model": m, **IN_4_BITS, "precision": "bf16"}) for m in ("bert", "gpt2-lm", "pythia-160m")),
    *((2, {"model": "pythia-160m", "sequence_length": 64, "sequences": how}) for how in ("padded", "packed")),
    (2, {"model": "t5-small", **IN_4_BITS, "sequence_length": 32}),
    (16, {**TINY, **IN_4_BITS, "sequence_length": 32}),
    *((4, {"model": m, "image_size": 96, "gradient_checkpointing": True}) for m in ("resnet18", "resnet", "swin-t")),
    (2, {"model": "vit_b_16", "gradient_checkpointing": True}),
    *(
        (2, {"model": m, "image_size": 96, "gradient_checkpointing": True})
        for m in ("efficientnet-b0", "mobilenet-v3-large")
    ),
    *(
        (64, {**TINY, name: value})
        for name, value in (("accumulation_steps", 4), ("clip_grad_norm", True), ("ema", True))
    ),
    *((64, {**TINY, name: value}) for name, value in (("frozen_blocks", 1), ("attention", "eager"))),
    (64, {**TINY, "optimizer": "adamw-8bit"}),
    (2, {"model": "gpt2-lm", "sequence_length": 64, "accumulation_steps": 2, "clip_grad_norm": True}),
    (2, {"model": "pythia-160m", "sequence_length": 64, "frozen_blocks": 6, "ema": True}),
    (2, {"model": "gpt2-lm", "sequence_length": 64, "attention": "eager"}),
    (8, {"model": "resnet18", "image_size": 96, "ema": True, "optimizer": "sgd"}),
]


def predicted(make_step: trace.MakeStep, card: gpus.Gpu | None, batch_size: int, precision: str) -> EstimateAt:
    """One size, traced as it is."""
    conditions = trace.conditions_for(card, precision)
    model = RetracedModel(lambda size: trace.record(make_step, size, conditions), [], conditions.method)
    return estimate_at(model, card, batch_size)


def measured_part() -> list[dict[str, Any]]:
    rows = []
    for run in json.loads(MEASURED.read_text())["runs"]:
        card = gpus.find(CARDS[run["gpu"]])
        at = predicted(step_maker(run["model"], run["optimizer"]), card, run["batch_size"], "fp32")
        truth = run["measured_peak_bytes"]
        rows.append(
            {
                "case": f"{run['model'].split('  #')[0][:60]} {run['optimizer']} b{run['batch_size']}",
                "family": "transformer" if is_language(run["model"]) else "cnn",
                "measured_bytes": truth,
                "predicted_bytes": at.peak_reserved_bytes,
                "error_fraction": (at.peak_reserved_bytes or 0) / truth - 1,
                "xmem_error_fraction": run["xmem_estimate_bytes"] / truth - 1,
            }
        )
        print_row(rows[-1])
    return rows


def cpu_part() -> list[dict[str, Any]]:
    rows = []
    for batch_size, settings in CPU_CASES:
        spec = RunSpec(**settings, device="cpu")
        truth = real_peak_bytes(spec, batch_size)
        at = predicted(trace.step_maker(spec), None, batch_size, spec.precision)
        rows.append(
            {
                "case": f"{' '.join(f'{name}={value}' for name, value in settings.items())} batch={batch_size}",
                "family": "weights of 4 bits" if spec.load_in_4bit else spec.workload.architecture,
                "processor": PROCESSOR,
                "measured_bytes": truth,
                "predicted_bytes": at.peak_allocated_bytes,
                "error_fraction": at.peak_allocated_bytes / truth - 1,
            }
        )
        print_row(rows[-1])
    return rows


def real_peak_bytes(spec: RunSpec, batch_size: int) -> int:
    """The highest point of real steps, by the allocator's events."""
    device = torch.device("cpu")
    bench = Bench(spec, Cpu(device), build(spec, device))
    step = TrainingStep(spec, bench.built, device)
    peaks = [profiled_step(bench, step, batch_size) for _ in range(MEMORY_STEPS)]
    return max(peak.total_bytes for peak in peaks if peak is not None)


def waiting_part() -> list[dict[str, Any]]:
    card, rows = gpus.find("h100-80gb"), []
    for name, workload in PREDICTED.items():
        for precision, (allocated_mib, reserved_mib) in workload.sketched_mib.items():
            at = predicted(workload.make_step(precision), card, workload.batch_size, precision)
            rows.append(
                {
                    "case": f"{name} {precision}",
                    "predicted_allocated_bytes": at.peak_allocated_bytes,
                    "predicted_reserved_bytes": at.peak_reserved_bytes,
                    "sketch_allocated_mib": allocated_mib,
                    "sketch_reserved_mib": reserved_mib,
                    "measured_bytes": None,
                }
            )
            ours = f"{at.peak_allocated_bytes / MIB:8.0f} / {(at.peak_reserved_bytes or 0) / MIB:.0f} MiB"
            print(f"{rows[-1]['case']:62} {ours}, sketch {allocated_mib} / {reserved_mib}; not measured", flush=True)
    return rows


def print_row(row: dict[str, Any]) -> None:
    figures = f"{row['measured_bytes'] / MIB:10.1f} {row['predicted_bytes'] / MIB:10.1f} MiB"
    xmem = f"   xMem {row['xmem_error_fraction']:+.2%}" if "xmem_error_fraction" in row else ""
    print(f"{row['case']:82} {figures} {row['error_fraction']:+9.4%}{xmem}", flush=True)


def summary(rows: Sequence[dict[str, Any]], key: str = "error_fraction") -> dict[str, Any]:
    """Median and worst by family, of the absolute errors. A case of several processors counts once, with its worst."""
    worst: dict[tuple[str, str], float] = {}
    for row in rows:
        if key in row:
            case = (row["family"], row["case"])
            worst[case] = max(worst.get(case, 0.0), abs(row[key]))
    errors = {family: [error for (of, _), error in worst.items() if of == family] for family in ("transformer", "cnn")}
    errors["all"] = list(worst.values())
    return {
        family: {"runs": len(of), "typical_fraction": median(of), "worst_fraction": max(of)}
        for family, of in errors.items()
        if of
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append", help="may be repeated; default all")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    torch.manual_seed(0)
    result: dict[str, Any] = {"versions": versions(), "platform": platform.platform(), "cpu_count": os.cpu_count()}
    for part in options.part or PARTS:
        before = time.monotonic()
        print(f"\n{part}", flush=True)
        rows = {"measured": measured_part, "cpu": cpu_part, "waiting": waiting_part}[part]()
        if part == "cpu" and options.output and options.output.exists():
            earlier = json.loads(options.output.read_text()).get("cpu", {"rows": []})["rows"]
            rows = [row for row in earlier if row["processor"] != PROCESSOR] + rows
        result[part] = {"rows": rows, "seconds": round(time.monotonic() - before, 1)}
        if part != "waiting":
            result[part]["summary"] = summary(rows)
            print(json.dumps(result[part]["summary"]))
        if part == "measured":
            result[part]["xmem_summary"] = summary(rows, "xmem_error_fraction")
            print("xMem", json.dumps(result[part]["xmem_summary"]))
    if options.output:
        options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
