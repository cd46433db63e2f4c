"""Trains a model of the catalogue as one rank of several: started by `torchrun`, watched and ended by `tune`.

    torchrun --nproc-per-node=2 -m engine.measurement.ranked_training '{"model": "bert-tiny", "ranks": 2, ...}' 16

Model, batch, loss, optimizer and step are those of a measurement on one device. Every rank draws a batch of its own.
"""

from __future__ import annotations

import json
import os
import sys

import torch
import torch.distributed as dist

from ..errors import DeviceUnavailable
from ..settings.spec import RunSpec
from ..settings.training_spec import check_precision
from .environment import check_environment
from .ranks import step_of_this_rank
from .step import apply_precision
from .workloads import build

SEED = 0


def main(settings: str, batch_size: int) -> None:
    spec, device = RunSpec.from_dict(json.loads(settings)), _device()
    is_nvidia = device.type == "cuda" and not torch.version.hip
    check_precision(spec.precision, str(device), torch.cuda.get_device_capability(device) if is_nvidia else None)
    check_environment(spec, device.type)
    apply_precision(spec.precision)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    torch.manual_seed(SEED)  # every rank begins with the same weights
    step = step_of_this_rank(spec, build(spec, device), device)
    torch.manual_seed(SEED + dist.get_rank())
    while True:
        step.begin()
        step(batch_size)


def _device() -> torch.device:
    """Return the device of this rank; a CPU where no GPU is to be seen. Raises DeviceUnavailable."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    place, here = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if place >= here:
        raise DeviceUnavailable(f"rank {place} has no GPU: {here} can be seen here")
    torch.cuda.set_device(place)
    return torch.device("cuda", place)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
