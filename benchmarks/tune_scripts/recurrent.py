"""An LSTM with the batch in the second dimension."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
model = nn.LSTM(32, 128)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(1_000):
    optimizer.zero_grad()
    model(torch.randn(24, int(sys.argv[1]), 32))[0].square().mean().backward()
    optimizer.step()
