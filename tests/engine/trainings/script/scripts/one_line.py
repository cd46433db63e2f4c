"""A hard-coded batch size, and the one line by which it can be set."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine.public import steps

torch.set_num_threads(1)
loader = DataLoader(TensorDataset(torch.randn(20_000, 64)), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (inputs,) in steps(loader):
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
