"""A loop with accelerate, to be started with `accelerate launch`: each process draws batches of its own."""

import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
accelerator = Accelerator(cpu=True)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
loader = DataLoader(TensorDataset(torch.randn(8_000, 64)), batch_size=int(sys.argv[1]))
model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters()), loader)
for _ in range(50):
    for (inputs,) in loader:
        optimizer.zero_grad()
        accelerator.backward(model(inputs).square().mean())
        optimizer.step()
