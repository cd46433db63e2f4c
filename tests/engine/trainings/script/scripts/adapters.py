"""Trains adapters of a frozen model, as kohya's sd-scripts do: the model is in evaluation mode, its adapters are not.

adapters.py BATCH_SIZE
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

size = int(sys.argv[1])
torch.manual_seed(1)
torch.set_num_threads(1)


class Adapter(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.down, self.up = nn.Linear(64, 4), nn.Linear(4, 64)
        self.layer_forward, layer.forward = layer.forward, self.forward

    def forward(self, rows):
        return self.layer_forward(rows) + self.up(self.down(rows))


model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(4)))
model.requires_grad_(False)
model.eval()
adapters = nn.ModuleList(Adapter(layer) for layer in model)
adapters.train()
optimizer = torch.optim.AdamW(adapters.parameters())
for rows in DataLoader(torch.randn(4_096, 64), batch_size=size):
    optimizer.zero_grad()
    model(rows).square().mean().backward()
    optimizer.step()
