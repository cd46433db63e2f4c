"""Data-parallel training under torchrun; one rank can be made to fail, to consume another batch, or to be late."""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int)
parser.add_argument("--rank-fails", type=int)
parser.add_argument("--rank-differs", type=int)
parser.add_argument("--rank-late", type=int)
options = parser.parse_args()
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)))
optimizer = torch.optim.AdamW(model.parameters())
size = options.batch_size // 2 if rank == options.rank_differs else options.batch_size
for step in range(1_000):
    if rank == options.rank_fails and step == 2:
        raise torch.OutOfMemoryError(f"CUDA out of memory on rank {os.environ['RANK']}")
    optimizer.zero_grad()
    if options.rank_late is not None:
        time.sleep(0.4)
    model(torch.randn(size, 64)).square().mean().backward()
    if rank == options.rank_late and step == 4:
        time.sleep(0.3)  # its memory is read later than the other's
    optimizer.step()
