"""Trains on, after a first forward pass failed and was caught, as scripts do that look for a size themselves."""

import sys

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters())
try:
    model(torch.randn(int(sys.argv[1]), 65))
except RuntimeError:
    print("caught", flush=True)
for _ in range(100):
    optimizer.zero_grad()
    model(torch.randn(int(sys.argv[1]), 64)).sum().backward()
    optimizer.step()
