"""A program that tunes a function of its own, after it has computed with several threads, as a notebook has."""

import json
import os
import sys
import time
from pathlib import Path

import torch
from torch import nn

from engine.public import EngineError, tune

torch.set_num_threads(2)
torch.ones(1_000, 1_000).matmul(torch.ones(1_000, 1_000)).sum().item()
nn.Linear(512, 512)(torch.randn(4_096, 512)).sum().backward()
kept = nn.Linear(64, 10)
optimizer_outside = torch.optim.SGD(kept.parameters())


def make_step(batch_size):
    torch.manual_seed(1)
    if os.getpid() == os.getsid(0):  # a start, not the program
        Path("written").touch()
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        optimizer.zero_grad()
        model(torch.randn(batch_size, 64)).square().mean().backward()
        optimizer.step()

    return step


def ignores(_):
    return make_step(8)


def steps_outside(batch_size):
    def step():
        kept(torch.randn(batch_size, 64)).sum().backward()
        optimizer_outside.step()

    return step


def without_backward(batch_size):
    return lambda: kept(torch.randn(batch_size, 64)).sum()


def by_hand(batch_size):
    return lambda: kept(torch.randn(batch_size, 64)).sum().backward()


def hangs(_):
    Path(sys.argv[3]).write_text(str(os.getpid()))
    time.sleep(3_600)


if __name__ == "__main__":
    try:
        settings = {"memory_limit": sys.argv[2], "device": "cpu", "compare_speed": False}
        print(json.dumps(tune(globals()[sys.argv[1]], **settings, emit=id).to_dict()))
    except EngineError as error:
        print(json.dumps(error.to_dict()))
