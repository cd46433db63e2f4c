"""Data-parallel training that starts its own ranks, as scripts do without torchrun; or trainings with no group at all.

The ranks can divide the batch size among themselves, and some can be made to run out of memory in their last step.
"""

import argparse
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def train(rank: int, options: argparse.Namespace, meeting: str) -> None:
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    if not options.alone:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=options.ranks)
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    size = options.batch_size // options.ranks if options.divides else options.batch_size
    for step in range(options.steps):
        if rank in options.rank_fails and step == options.steps - 1:
            torch.empty(2**50)  # more than any address space has
        optimizer.zero_grad()
        model(torch.randn(size * (1 + rank), 64)[:size]).square().mean().backward()
        optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--start", choices=("spawn", "fork", "processes"), default="spawn")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--divides", action="store_true")
    parser.add_argument("--rank-fails", type=int, nargs="*", default=())
    parser.add_argument("--steps", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given = (options, f"{folder}/meeting")
        if options.start == "processes":
            ranks = [mp.get_context("spawn").Process(target=train, args=(n, *given)) for n in range(options.ranks)]
            for each in ranks:
                each.start()
            for each in ranks:
                each.join()
        else:
            mp.start_processes(train, given, nprocs=options.ranks, start_method=options.start)


if __name__ == "__main__":
    main()
