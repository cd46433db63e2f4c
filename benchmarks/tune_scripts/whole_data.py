"""A data set of 200 MB in one tensor, which is not the training's; batches are gathered or sliced from it."""

import sys

import torch
from mlp import FEATURES, network

data = torch.randn(800_000, FEATURES)
size, model = int(sys.argv[1]), network()
optimizer = torch.optim.AdamW(model.parameters())
once = torch.randn(size, FEATURES)
for number in range(500):
    if sys.argv[2] == "gather":
        inputs = data[torch.randint(0, len(data), (size,))]
    elif sys.argv[2] == "slice":
        inputs = data[number * size % (len(data) - size) :][:size]
    else:
        inputs = once
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
