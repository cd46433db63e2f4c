"""Automatic mixed precision whose gradients overflow at first: the scaler skips those steps."""

import sys

import torch
from mlp import network, rows

model = network()
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** int(sys.argv[2]))
for inputs, labels in torch.utils.data.DataLoader(rows(60_000), batch_size=int(sys.argv[1])):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
