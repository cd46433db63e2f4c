"""Ignores its flag; its features are 16, the size that a search starts with."""

import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(1_000):
    optimizer.zero_grad()
    model(torch.randn(8, 16)).square().mean().backward()
    optimizer.step()
