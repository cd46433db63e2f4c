"""A training that holds the outputs of its last steps, each larger than the model, and a view of another tensor."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(16, 4_096), nn.Unflatten(1, (64, 64)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = []
for _ in range(10_000):
    outputs = model(torch.randn(int(sys.argv[1]), 16))
    loss = outputs.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept = [*kept[-3:], outputs]
