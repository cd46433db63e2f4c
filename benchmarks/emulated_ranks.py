"""Compares the memory of emulated ranks with that of real ones, which gloo connects on this machine's CPU.

    python -m benchmarks.emulated_ranks [--rounds 5] [--output benchmarks/results/emulated_ranks.cpu.json]

Each case is a strategy, a number of ranks, a model and a batch size; all cases of one number of ranks run after each
other in one start. Real ranks are started afresh in each round, because their peaks differ: communication runs beside
the backward pass. The peak is that of the allocator's own events. Real ones are read twice: with all events, and
without what gloo allocates for itself inside its own ranges (`c10d::`, `gloo:`), which NCCL does not take from
PyTorch's allocator. A `difference` is to the lowest start: one that is far below zero with few starts may be a real
rank whose communication ended late, and held a gradient more.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STRATEGIES = ("ddp", "ddp-views", "zero1", "fsdp2", "fsdp2-no-reshard", "fsdp2-bf16", "fsdp1")
MODELS = (("blocks", 16), ("blocks", 64), ("attention", 16), ("attention", 64), ("convolutions", 16))
"""Models, each with a batch size."""
CASES = [(strategy, model, size) for strategy in STRATEGIES for model, size in MODELS]
RANKS, STEPS, WIDTH, BLOCKS, VOCABULARY, TOKENS = (2, 4), 3, 128, 4, 1_000, 16
STAGING = ("c10d::", "gloo:")


def emulated_of(size: int) -> tuple[int, ...]:
    """The ranks that are emulated of so many, as `tune` does by default."""
    return tuple(dict.fromkeys((0, 1, size - 1)))


def run_rank(output: Path) -> None:
    """Train every case as this rank and write its peaks; `EMULATED_OF` names the group where it is emulated."""
    import torch
    import torch.distributed as dist

    warnings.simplefilter("ignore")
    if "EMULATED_OF" in os.environ:
        from engine.settings.ranks.emulated_group import emulate

        emulate(int(os.environ["RANK"]), int(os.environ["EMULATED_OF"]))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rows = []
    for case in CASES:
        dist.barrier()
        peak, without_staging = _peaks(*case)
        rows.append({"case": case, "peak_bytes": peak, "without_staging_bytes": without_staging})
        gc.collect()
    output.write_text(json.dumps(rows))
    dist.barrier()
    dist.destroy_process_group()


def _peaks(strategy: str, kind: str, batch_size: int) -> tuple[int, int]:
    """Train one case; the peak of all allocations, and of those outside the library's own ranges."""
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile

    torch.manual_seed(0)
    model = _model(nn, kind)
    held = sum(each.numel() * each.element_size() for each in model.parameters())
    watched = profile(activities=[ProfilerActivity.CPU], profile_memory=True).__enter__()
    model, optimizer = _wrapped(model, strategy)
    for _ in range(STEPS):
        targets = torch.randint(0, VOCABULARY, (batch_size, 1 if kind == "convolutions" else TOKENS))
        inputs = torch.randn(batch_size, 3, 16, 16) if kind == "convolutions" else targets
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs).view(-1, VOCABULARY).float(), targets.flatten())
        loss.backward()
        optimizer.step()
    watched.__exit__(None, None, None)
    events = sorted(events_of(watched.profiler.kineto_results.experimental_event_tree()))
    return held + peak_of(events), held + peak_of([each for each in events if not each[3]])


def _model(nn: Any, kind: str) -> Any:
    """A model of several equal blocks between its first and its last layer."""
    if kind == "convolutions":
        first, last = nn.Conv2d(3, 32, 3, padding=1), nn.Sequential(nn.Flatten(), nn.Linear(32 * 256, VOCABULARY))
        blocks = [nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.GroupNorm(8, 32), nn.ReLU()) for _ in range(BLOCKS)]
        return nn.Sequential(first, *blocks, last)
    made = {
        "blocks": lambda: _block(nn, WIDTH),
        "attention": lambda: nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, batch_first=True),
    }[kind]
    blocks = [made() for _ in range(BLOCKS)]
    return nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), *blocks, nn.Linear(WIDTH, VOCABULARY))


def _block(nn: Any, width: int) -> Any:
    class Block(nn.Module):  # type: ignore[misc]
        """A residual block."""

        def __init__(self) -> None:
            super().__init__()
            self.norm, self.a, self.b = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            return x + self.b(nn.functional.gelu(self.a(self.norm(x))))

    return Block()


def _wrapped(model: Any, strategy: str) -> tuple[Any, Any]:
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    if strategy == "fsdp1":
        policy = ModuleWrapPolicy({type(each) for each in list(model)[1:-1]})
        model = FullyShardedDataParallel(model, auto_wrap_policy=policy, device_id=torch.device("cpu"))
    elif strategy.startswith("fsdp2"):
        options: dict[str, Any] = {"reshard_after_forward": "no-reshard" not in strategy}
        if strategy.endswith("bf16"):
            options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for each in model:
            fully_shard(each, **options)
        fully_shard(model, **options)
    else:
        model = DistributedDataParallel(model, gradient_as_bucket_view=strategy == "ddp-views", bucket_cap_mb=1)
    if strategy == "zero1":
        return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def events_of(roots: list[Any]) -> Iterator[tuple[int, int, int, bool]]:
    """Yield each event of the allocator: time, address, bytes, and whether it lies in a range of the library."""
    waiting = [(node, False) for node in roots]
    while waiting:
        node, inside = waiting.pop()
        if node.tag.name == "Allocation":
            if node.extra_fields.device.type == "cpu":
                yield node.start_time_ns, node.extra_fields.ptr, node.extra_fields.alloc_size, inside
            continue
        inside = inside or node.name.startswith(STAGING)
        waiting += [(child, inside) for child in node.children]


def peak_of(events: list[tuple[int, int, int, bool]], held: Mapping[int, int] = MappingProxyType({})) -> int:
    """Replay the events over what was held before them; what else is freed belongs to the library."""
    live = dict(held)
    now = most = sum(live.values())
    for _, address, size, _ in events:
        if size > 0:
            now += size - live.get(address, 0)
            live[address] = size
        else:
            now -= live.pop(address, 0)
        most = max(most, now)
    return most


def main() -> None:
    """Start the real ranks and the emulated ones, and write both side by side."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/emulated_ranks.cpu.json")
    parser.add_argument("--as-rank", type=Path)
    options = parser.parse_args()
    if options.as_rank is not None:
        run_rank(options.as_rank)
        return
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for size in RANKS:
            emulated = []
            for rank in emulated_of(size):
                emulated += _started(Path(folder), size, (rank,), {"EMULATED_OF": str(size)})
            rounds: list[list[dict[str, Any]]] = []
            for _ in range(options.rounds):
                rounds.append(_started(Path(folder), size, tuple(range(size)), {}))
                write(options.output, [*cases, *_compared(size, rounds, emulated)], options.rounds)
            cases += _compared(size, rounds, emulated)


def write(output: Path, cases: list[dict[str, Any]], rounds: int) -> None:
    """Write what is known so far."""
    import torch

    worst: dict[str, float] = {}
    for case in cases:
        worst[case["strategy"]] = max(worst.get(case["strategy"], 0.0), abs(case["difference"]), key=abs)
    document = {"torch": torch.__version__, "rounds": rounds, "steps": STEPS, "worst_difference": worst, "cases": cases}
    output.write_text(json.dumps(document, indent=1) + "\n")


def _started(folder: Path, size: int, ranks: tuple[int, ...], more: dict[str, str]) -> list[dict[str, Any]]:
    """Start these ranks at once; the rows of all."""
    common = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29611", "LOCAL_RANK": "0"}
    command = [sys.executable, "-m", "benchmarks.emulated_ranks", "--as-rank"]
    files = {rank: folder / f"{size}-{rank}-{'emulated' if more else 'real'}.json" for rank in ranks}
    processes = [
        subprocess.Popen(
            [*command, str(file)], cwd=ROOT, env={**os.environ, **common, **more, "RANK": str(rank)}, stderr=sys.stderr
        )
        for rank, file in files.items()
    ]
    for process in processes:
        if process.wait():
            raise RuntimeError(f"a rank of {size} ended with status {process.returncode}")
    return [row for file in files.values() for row in json.loads(file.read_text())]


def _compared(size: int, rounds: list[list[dict[str, Any]]], emulated: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for each case: the worst emulated rank beside the worst real rank of each start."""
    rows = []
    for strategy, model, batch_size in CASES:
        case = [strategy, model, batch_size]
        stand_in = _worst(emulated, case, "peak_bytes")
        without_staging = [_worst(each, case, "without_staging_bytes") for each in rounds]
        rows.append(
            {
                "strategy": strategy,
                "ranks": size,
                "model": model,
                "batch_size": batch_size,
                "emulated_bytes": stand_in,
                "real_bytes": [_worst(each, case, "peak_bytes") for each in rounds],
                "real_without_staging_bytes": without_staging,
                "difference": round(stand_in / min(without_staging) - 1, 6),
            }
        )
    return rows


def _worst(rows: list[dict[str, Any]], case: list[Any], kind: str) -> int:
    return max(int(row[kind]) for row in rows if row["case"] == case)


if __name__ == "__main__":
    main()
