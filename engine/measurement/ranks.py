"""Puts a strategy of several ranks around a model: torch's own DistributedDataParallel, FSDP2 or ZeRO-1.

Nothing else does, so what is measured, emulated and estimated is one training. An estimate traces FSDP2 as it is made
here; DDP's buckets it makes itself, because the reducer reads tensors back.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from ..settings.optimizers import OPTIMIZERS
from ..settings.rank_settings import FSDP, ZERO1
from ..settings.spec import RunSpec
from .optimizers import LEARNING_RATE, optimizer_class
from .step import TrainingStep
from .workloads import Built, series_of_blocks


def step_of_this_rank(spec: RunSpec, built: Built, device: torch.device) -> TrainingStep:
    """Return the step of a process in its group; every micro-batch's backward pass averages the gradients."""
    if spec.strategy == FSDP:
        of_rank = replace(built, forward=_Forward(built))
        return sharded_step(spec, of_rank, device, init_device_mesh(device.type, (spec.ranks,)))
    of_rank = replace(built, forward=DistributedDataParallel(_Forward(built)))
    if spec.strategy != ZERO1:
        return TrainingStep(spec, of_rank, device)
    step = TrainingStep(spec, of_rank, device, make=_with_sharded_state)
    step.keeps_state = False  # the state lies in this rank's optimizer, inside the sharded optimizer
    return step


def sharded_step(spec: RunSpec, built: Built, device: torch.device, mesh: Any) -> TrainingStep:
    shard(spec, built.model, mesh)
    step = TrainingStep(spec, built, device)
    step.autocast_dtype = None  # the policy of the shards decides it
    return step


def shard(spec: RunSpec, model: nn.Module, mesh: Any) -> None:
    fsdp = importlib.import_module("torch.distributed.fsdp")
    halves = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32} if spec.precision == "bf16" else {}
    policy = fsdp.MixedPrecisionPolicy(**halves)
    for block in series_of_blocks(model):
        fsdp.fully_shard(block, mesh=mesh, mp_policy=policy)
    fsdp.fully_shard(model, mesh=mesh, mp_policy=policy)


def _with_sharded_state(name: str, parameters: Iterable[nn.Parameter]) -> Any:
    sharded = importlib.import_module("torch.distributed.optim")  # it warns of scripted functions
    learned = [each for each in parameters if each.requires_grad]
    options = OPTIMIZERS[name].options
    return sharded.ZeroRedundancyOptimizer(learned, optimizer_class(name), lr=LEARNING_RATE, **options)


class _Forward(nn.Module):
    """The forward pass as a module for a strategy, itself in training mode, so that the watch counts its passes."""

    def __init__(self, built: Built) -> None:
        super().__init__()
        self.model, self.run = built.model, built.forward

    def forward(self, batch: dict[str, Tensor]) -> Any:
        return self.run(batch)
