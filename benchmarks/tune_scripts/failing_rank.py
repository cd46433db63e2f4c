"""Trains on several ranks, of which one fails: how, when and which is said on the command line.

torchrun ... failing_rank.py BATCH_SIZE HOW MOMENT STEP RANK FILE_THAT_SAYS_IT_DID
"""

import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

size, how, moment, failing_step, failing_rank = int(sys.argv[1]), *sys.argv[2:4], *map(int, sys.argv[4:6])
torch.set_num_threads(1)
step = 0


def reach(now):
    """Fail where this rank is to fail now."""
    is_in_step = now in ("forward", "backward", "optimizer_step", "between_steps")
    if now != moment or int(os.environ["RANK"]) != failing_rank or (is_in_step and step != failing_step):
        return
    Path(sys.argv[6]).touch()
    if how == "is_killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "raises":
        raise ValueError("this rank fails")
    elif how == "exits":
        sys.exit(0)
    elif how == "vanishes":
        os._exit(0)
    elif how == "hangs":
        time.sleep(3_600)
    elif how == "runs_out_of_memory":
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")


class Network(nn.Module):
    """A small MLP that fails within its passes."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, inputs):
        reach("forward")
        hidden = self.body(inputs).relu()
        hidden.register_hook(lambda _: reach("backward"))
        return self.head(hidden)


class Optimizer(torch.optim.AdamW):
    """AdamW that fails within its step."""

    def step(self, closure=None):
        super().step(closure)
        reach("optimizer_step")


reach("import")
dist.init_process_group("gloo")
reach("build")
model = nn.parallel.DistributedDataParallel(Network())
optimizer = Optimizer(model.parameters())
steps = failing_step if moment == "after_the_last" else 1_000
while step < steps:
    optimizer.zero_grad()
    model(torch.randn(size, 64)).square().mean().backward()
    optimizer.step()
    reach("between_steps")
    step += 1
reach("after_the_last")
