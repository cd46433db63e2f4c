"""A training in 64 bits, because numpy's random numbers have them and the model was made to take them."""

import sys

import numpy
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)
rows = torch.from_numpy(numpy.random.default_rng(1).standard_normal((4_096, 512)))
model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).double()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
size = int(sys.argv[1])
for number in range(10_000):
    at = number * size % (len(rows) - size)
    batch = rows[at : at + size]
    optimizer.zero_grad()
    nn.functional.mse_loss(model(batch), batch).backward()
    optimizer.step()
