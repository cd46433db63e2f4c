"""A compiled model; `in_place` compiles the module itself."""

import sys

import torch
from mlp import network, rows

model = network()
if "in_place" in sys.argv:
    model.compile()
else:
    model = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters())
for inputs, labels in torch.utils.data.DataLoader(rows(), batch_size=int(sys.argv[1])):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
