"""Compares emulated ranks with real ones that NCCL connects, and measures what NCCL itself takes. Needs GPUs.

    python benchmarks/ranks_on_gpus.py [--ranks 2] [--starts 5] [--batch-size 4] [--strategy NAME ...] [--output FILE]

A script as people write it for GPUs is started by `tune` at one batch size: once emulated on one GPU, and several times
on as many GPUs as ranks, because the peaks of real ranks differ. On a machine with fewer GPUs the emulated peaks are
written alone. NCCL's memory is what the driver counts less after the first all-reduce, beyond what torch reserved.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "tests" / "engine" / "trainings" / "script" / "scripts" / "ranks_on_card.py"
STRATEGIES = ("fsdp2", "fsdp1", "ddp+zero1")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
SECONDS = 900


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--starts", type=int, default=5, help="of real ranks, for each strategy")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--strategy", nargs="+", choices=STRATEGIES, default=STRATEGIES, help="these alone")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--as-rank", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_rank:
        return take_nccl()
    cards = json.loads(run(sys.executable, "-c", LIST_CARDS))
    found: dict[str, Any] = {"cards": cards, "ranks": given.ranks, "batch_size": given.batch_size}
    found["strategies"] = {name: compared(name, given, len(cards) >= given.ranks) for name in given.strategy}
    if len(cards) >= given.ranks:
        found["nccl_bytes"] = json.loads(run(*TORCHRUN, str(given.ranks), __file__, "--as-rank"))
    text = json.dumps(found, indent=1)
    print(text)
    if given.output is not None:
        given.output.write_text(f"{text}\n")


LIST_CARDS = (
    "import json, torch; print(json.dumps([torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]))"
)


def compared(strategy: str, given: argparse.Namespace, has_cards: bool) -> dict[str, Any]:
    """Return the peak of each rank: emulated, and of each start of real ranks, with the difference to the lowest."""
    emulated = peaks(strategy, given, "--emulate-ranks", str(given.ranks))
    starts = [peaks(strategy, given) for _ in range(given.starts if has_cards else 0)]
    row: dict[str, Any] = {"emulated_bytes": emulated, "real_bytes": starts}
    if starts:
        lowest = min(map(max, starts))
        row["difference"] = max(emulated) / lowest - 1
    return row


def peaks(strategy: str, given: argparse.Namespace, *options: str) -> list[int]:
    """Start the script at the one size; the peak of each rank, in bytes."""
    size = ("--current-batch-size", str(given.batch_size), "--max", str(given.batch_size))
    tune = (sys.executable, "-m", "engine", "tune", "--json", "--device", "cuda", "--no-compare-speed", *size, *options)
    command = (*TORCHRUN, str(given.ranks), str(SCRIPT), "--batch-size", "{batch_size}", "--strategy", strategy)
    document = json.loads(run(*tune, "--", *command))
    found: list[int] = document["training"]["rank_peaks_bytes"]
    return found


def run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True).stdout


def take_nccl() -> None:
    """Connect the ranks, and print what that took of rank 0's GPU."""
    import torch
    import torch.distributed as dist

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    values = torch.ones(1 << 20, device=device)
    before, reserved = torch.cuda.mem_get_info()[0], torch.cuda.memory_reserved()
    dist.init_process_group("nccl", device_id=device)
    dist.all_reduce(values)
    torch.cuda.synchronize()
    taken = before - torch.cuda.mem_get_info()[0] - (torch.cuda.memory_reserved() - reserved)
    if dist.get_rank() == 0:
        print(taken)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
