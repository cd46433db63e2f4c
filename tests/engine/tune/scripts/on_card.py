"""A training on a card; what it is refused it can be made to catch, as some frameworks do."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int)
parser.add_argument("--catch", action="store_true")
options = parser.parse_args()
model = nn.Sequential(*[nn.Sequential(nn.Linear(1_024, 1_024), nn.ReLU()) for _ in range(8)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def step(size: int) -> None:
    optimizer.zero_grad()
    model(torch.empty(size, 256, 1_024, device="cuda")).sum().backward()
    optimizer.step()


for _ in range(1_000):
    try:
        step(options.batch_size)
    except torch.OutOfMemoryError:
        if not options.catch:
            raise
        step(1)
