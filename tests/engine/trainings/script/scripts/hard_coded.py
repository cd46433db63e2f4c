"""A batch size that nobody can set from outside, and four micro-batches accumulated into a step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
loader = DataLoader(TensorDataset(torch.randn(20_000, 64)), batch_size=32)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for number, (inputs,) in enumerate(loader, 1):
    (model(inputs).square().mean() / 4).backward()
    if number % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
