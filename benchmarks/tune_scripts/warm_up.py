"""Trains some steps with two samples to warm up, then with the batch size it was given."""

import sys

import torch
from mlp import FEATURES, network

model = network()
optimizer = torch.optim.AdamW(model.parameters())
for number in range(1_000):
    size = 2 if number < int(sys.argv[2]) else int(sys.argv[1])
    optimizer.zero_grad()
    model(torch.randn(size, FEATURES)).square().mean().backward()
    optimizer.step()
