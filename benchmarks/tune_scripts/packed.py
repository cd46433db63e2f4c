"""Packed rows: all samples of a batch in one row of tokens, so that no dimension is the batch size."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Sequential(nn.Embedding(1_000, 64), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 100))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(1_000):
    tokens = torch.randint(0, 1_000, (1, int(sys.argv[1]) * 20))
    optimizer.zero_grad()
    model(tokens).square().mean().backward()
    optimizer.step()
