"""A training whose optimizer is made before its model knows its shapes."""

import sys

import torch
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)
model = nn.Sequential(nn.LazyLinear(32), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(200):
    optimizer.zero_grad()
    model(torch.randn(int(sys.argv[1]), 16)).square().mean().backward()
    optimizer.step()
