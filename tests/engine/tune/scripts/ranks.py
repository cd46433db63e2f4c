"""Data-parallel training under torchrun; one rank can be made to fail, or to consume another batch."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int)
parser.add_argument("--rank-fails", type=int)
parser.add_argument("--rank-differs", type=int)
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
    model(torch.randn(size, 64)).square().mean().backward()
    optimizer.step()
