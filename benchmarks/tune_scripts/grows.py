"""Keeps every loss with its graph: the memory grows with each step."""

import sys

import torch
from mlp import network, rows

model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for inputs, labels in torch.utils.data.DataLoader(rows(), batch_size=int(sys.argv[1])):
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    losses.append(loss if "graph" in sys.argv else model(inputs))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
