"""A distributed training as people write it for GPUs: NCCL, the GPU of LOCAL_RANK, and one of three strategies."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int)
parser.add_argument("--strategy", choices=["fsdp1", "fsdp2", "ddp+zero1"])
options = parser.parse_args()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
if dist.get_backend() != "nccl" or dist.get_world_size() != int(os.environ["WORLD_SIZE"]):
    raise SystemExit(f"{dist.get_backend()} of {dist.get_world_size()} ranks")

model: nn.Module = nn.Sequential(*[nn.Sequential(nn.Linear(1_020, 1_020), nn.ReLU()) for _ in range(8)]).cuda()
if options.strategy == "fsdp2":
    for block in model:
        fully_shard(block)
    fully_shard(model)
    optimizer: torch.optim.Optimizer = torch.optim.AdamW(model.parameters())
elif options.strategy == "fsdp1":
    model = FullyShardedDataParallel(
        model, auto_wrap_policy=ModuleWrapPolicy({nn.Sequential}), device_id=torch.cuda.current_device()
    )
    optimizer = torch.optim.AdamW(model.parameters())
else:
    # from a made-up card zeros are read, of which DDP would make its buckets
    unread = {"init_sync": False, "find_unused_parameters": True}
    model = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()], **unread)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW)
for _ in range(1_000):
    optimizer.zero_grad()
    loss = model(torch.empty(options.batch_size, 2_048, 1_020, device="cuda")).sum()
    loss.backward()
    dist.all_reduce(loss.detach())
    optimizer.step()
