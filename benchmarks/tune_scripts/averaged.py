"""Keeps an averaged copy of the model, made by deepcopy."""

import sys
from copy import deepcopy

import torch
from mlp import network, rows

model = network()
average = deepcopy(model) if "ema" in sys.argv else None
optimizer = torch.optim.AdamW(model.parameters())
for inputs, labels in torch.utils.data.DataLoader(rows(), batch_size=int(sys.argv[1])):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    with torch.no_grad():
        for mean, now in zip(average.parameters() if average else (), model.parameters(), strict=False):
            mean.lerp_(now, 0.01)
