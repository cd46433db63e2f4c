"""Parameters sharded over the ranks of torchrun by `fully_shard`."""

import sys

import torch
import torch.distributed as dist
from mlp import FEATURES, network
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
model = network()
for layer in model:
    if list(layer.parameters()):
        fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(1_000):
    optimizer.zero_grad()
    model(torch.randn(int(sys.argv[1]), FEATURES)).square().mean().backward()
    optimizer.step()
