"""A training with an optimizer of its own, which takes no option of the class that it extends."""

import torch
from torch import nn


class Mine(torch.optim.AdamW):
    def __init__(self, parameters, lr):
        super().__init__(parameters, lr=lr)


torch.manual_seed(1)
model = nn.Linear(16, 1)
optimizer = Mine(model.parameters(), 0.01)
for _ in range(10_000):
    optimizer.zero_grad()
    model(torch.randn(8, 16)).square().mean().backward()
    optimizer.step()
