"""How far estimates of rank 0 of several are from emulated ranks: the same steps with real tensors, on the CPU.

    python benchmarks/estimated_ranks.py [--output FILE] [--only TEXT]

Each case is a model, a strategy, a number of ranks and a setting. Estimated: the trace on fake `cpu` tensors, as
`engine.estimate` makes it. Emulated: the same model and step with torch's own DistributedDataParallel, fully_shard or
ZeroRedundancyOptimizer, real tensors and `engine.settings.ranks.emulated_group`; the peak is that of the allocator's
own events over three steps, from the construction of the strategy on. A CPU copies a gradient to pad it for its shards,
where CUDA's kernel of `_chunk_cat` writes it in place: so it is written in place here too. PyTorch's CUDA build does so
over a made-up driver, where FSDP's peak is the estimate's without that replacement: tests/cuda_stand_in/test_ranks.py.
Both are of rank 0. NCCL's memory and CUDA's streams are in neither. Nothing is fitted. Needs no GPU; takes some
minutes.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

from engine.estimate.tracing import trace  # noqa: E402
from engine.measurement.ranks import step_of_this_rank  # noqa: E402
from engine.measurement.step import TrainingStep  # noqa: E402
from engine.measurement.traced_step import read_trace  # noqa: E402
from engine.measurement.workloads import build  # noqa: E402
from engine.settings.rank_settings import FSDP, STRATEGIES  # noqa: E402
from engine.settings.ranks.emulated_group import emulated_ranks  # noqa: E402
from engine.settings.spec import MEMORY_STEPS, RunSpec  # noqa: E402

CPU = torch.device("cpu")
OUTPUT = ROOT / "benchmarks" / "results" / "estimated_ranks.json"
DECODER = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 688,
    "num_hidden_layers": 6,
    "vocab_size": 2000,
}
DECODER |= {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 2000, "max_position_embeddings": 128}
BERT: dict[str, Any] = {"model": "bert-tiny", "sequence_length": 64}
LLAMA: dict[str, Any] = {"model": "config", "config": json.dumps(DECODER), "task": "text-generation"}
LLAMA |= {"sequence_length": 64}
CASES: list[tuple[int, dict[str, Any]]] = [
    (8, BERT),
    (8, {**BERT, "accumulation_steps": 3, "clip_grad_norm": True}),
    (8, {**BERT, "optimizer": "momentum", "zero_grad": "before-backward"}),
    (8, LLAMA),
    (32, LLAMA),
    (8, {**LLAMA, "gradient_checkpointing": True, "clip_grad_norm": True}),
    (8, {**LLAMA, "lora_rank": 8}),
    (8, {**LLAMA, "optimizer": "adamw-fused", "ema": True, "outputs": "released"}),
    (8, {**BERT, "frozen_blocks": 1, "accumulation_steps": 2}),
    (4, {"model": "t5-small", "sequence_length": 32}),
]
RANKS = (2, 4)


def estimated_peak(spec: RunSpec, batch_size: int) -> int:
    """Return the peak of the trace of rank 0."""
    conditions = trace._conditions_of(spec, None)
    return trace.record(trace.step_maker(spec), batch_size, conditions).peak_live_bytes()


def emulated_peak(spec: RunSpec, batch_size: int, device: torch.device = CPU) -> int:
    """Return the peak of rank 0's real steps: on a CPU by the allocator's events, on a card by its counters."""
    with emulated_ranks(0, spec.ranks):
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        if device.type == "cuda":
            return _peak_on_card(spec, batch_size, device)
        held, traced = traced_steps(spec, batch_size)
        events, _ = read_trace(traced, "cpu")
        live = peak = sum(held.values())
        for event in events:
            live += event.size_bytes
            peak = max(peak, live)
    return peak


def _peak_on_card(spec: RunSpec, batch_size: int, device: torch.device) -> int:
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        built = build(spec, device)
        step = step_of_this_rank(spec, built, device) if spec.strategy == FSDP else None  # whole weights are gone then
        torch.cuda.reset_peak_memory_stats()
        _train(step or step_of_this_rank(spec, built, device), batch_size)
    return torch.cuda.max_memory_allocated()


def traced_steps(spec: RunSpec, batch_size: int) -> tuple[dict[int, int], profile]:
    """Train as the rank of the group that stands; bytes by address of the model before, and the allocator's events."""
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        built = build(spec, CPU)
        step = step_of_this_rank(spec, built, CPU) if spec.strategy == FSDP else None
        held = _bytes_of([*built.model.parameters(), *built.model.buffers()])
        with (
            patch.object(torch, "_chunk_cat", _written_in_place),
            profile(activities=[ProfilerActivity.CPU], profile_memory=True) as traced,
        ):
            _train(step or step_of_this_rank(spec, built, CPU), batch_size)
    return held, traced


def _train(step: TrainingStep, batch_size: int) -> None:
    for _ in range(MEMORY_STEPS):
        step.begin()
        step(batch_size)


def _written_in_place(tensors: list[Tensor], dim: int, num_chunks: int, *, out: Tensor) -> Tensor:
    """Do what CUDA's `_chunk_cat` does for `dim` 0: without the padded copies that the CPU's makes."""
    assert dim == 0
    parts, start = out.view(num_chunks, -1), 0
    for tensor in tensors:
        rows, each = tensor.shape[0], tensor.numel() // tensor.shape[0]
        of_chunk = -(-rows // num_chunks)
        for chunk in range(num_chunks):
            part = tensor[chunk * of_chunk : (chunk + 1) * of_chunk].reshape(-1)
            parts[chunk, start : start + part.numel()].copy_(part)
        start += of_chunk * each
    return out


def _bytes_of(tensors: list[Tensor]) -> dict[int, int]:
    storages = (getattr(tensor, "_local_tensor", tensor).untyped_storage() for tensor in tensors)
    return {storage.data_ptr(): storage.nbytes() for storage in storages}


def compare(spec: RunSpec, batch_size: int) -> dict[str, Any]:
    """Return one row: both peaks, and by which share the estimate differs."""
    estimated, emulated = estimated_peak(spec, batch_size), emulated_peak(spec, batch_size)
    return {
        "settings": named(spec),
        "batch_size": batch_size,
        "estimated_bytes": estimated,
        "emulated_bytes": emulated,
        "error_fraction": round(estimated / emulated - 1, 6),
    }


def named(spec: RunSpec) -> dict[str, Any]:
    """Return the settings of a case that are not the defaults, its config in words."""
    settings = {name: value for name, value in spec.to_dict().items() if value != getattr(RunSpec("bert"), name)}
    if spec.config:
        settings |= {"model": "a Llama of 6 layers, width 256"}
        for name in ("config", "config_parameters"):
            settings.pop(name, None)
    return settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--only", default="", help="only cases whose settings contain this text")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows, start = [], time.monotonic()
    for strategy in filter(None, STRATEGIES):
        for ranks in RANKS:
            for batch_size, settings in CASES:
                spec = RunSpec.from_dict({**settings, "strategy": strategy, "ranks": ranks})
                if options.only not in str(spec):
                    continue
                rows.append(compare(spec, batch_size))
                print(strategy, ranks, rows[-1]["batch_size"], rows[-1]["error_fraction"], settings, flush=True)
    errors = [abs(row["error_fraction"]) for row in rows]
    summary = {"cases": len(rows), "median_fraction": median(errors), "worst_fraction": max(errors)}
    document = {
        "torch": torch.__version__,
        "summary": summary,
        "seconds": round(time.monotonic() - start),
        "rows": rows,
    }
    options.output.write_text(json.dumps(document, indent=1) + "\n")
    print(summary)


if __name__ == "__main__":
    main()
