"""Accelerate's own loop, with two micro-batches in a step."""

import sys

import torch
from accelerate import Accelerator
from mlp import network, rows

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = network()
optimizer = torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(rows(), batch_size=int(sys.argv[1]), shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for inputs, labels in loader:
    with accelerator.accumulate(model):
        accelerator.backward(torch.nn.functional.cross_entropy(model(inputs), labels))
        optimizer.step()
        optimizer.zero_grad()
