"""Trains each strategy of eight ranks as one of them on a card, then estimates it; prints the peaks of both as JSON.

`padded` is what reducing gradients allocates beside its result where their rows cannot be shared out evenly.
"""

import json
from functools import partial
from multiprocessing import get_context
from unittest.mock import patch

import torch
from torch.nn.parallel import DistributedDataParallel

from benchmarks.estimated_ranks import emulated_peak
from engine.estimate.gpus import find
from engine.estimate.predict import estimate_at
from engine.estimate.tracing import trace
from engine.settings.spec import RunSpec

RANKS, SIZE, CARD = 8, 64, find("a100-40gb")  # whose processors and workspaces the made-up card has
CUDA = torch.device("cuda")


def padded_bytes() -> int:
    gradients = [torch.empty(RANKS * 1_000 + 1, 100, device=CUDA), torch.empty(3, device=CUDA)]
    reduced = torch.empty(RANKS, 1_001 * 100 + 1, device=CUDA)
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    torch._chunk_cat(gradients, dim=0, num_chunks=RANKS, out=reduced)  # type: ignore[attr-defined]
    return torch.cuda.max_memory_allocated() - held


specs = {each: RunSpec("bert-tiny", ranks=RANKS, strategy=each) for each in ("ddp", "fsdp", "zero1")}
# from a made-up card zeros are read, of which DDP would make its buckets
unread = partial(DistributedDataParallel, init_sync=False, find_unused_parameters=True)
with (
    patch("engine.measurement.ranks.DistributedDataParallel", unread),
    get_context("fork").Pool(1, maxtasksperchild=1) as alone,  # what one strategy leaves is not in the next one's peak
):
    started = {each: alone.apply_async(emulated_peak, (spec, SIZE, CUDA)) for each, spec in specs.items()}
    emulated = {each: one.get(300) for each, one in started.items()}
    padded = alone.apply(padded_bytes)
traced = {each: trace.model_of_one_size(spec, CARD) for each, spec in specs.items()}
estimated = {each: estimate_at(model, CARD, SIZE).peak_allocated_bytes for each, model in traced.items()}
print(json.dumps({"estimated": estimated, "emulated": emulated, "padded": padded}))
