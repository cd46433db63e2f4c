"""A training of four micro-batches a step, whose layers are run again on the way back."""

import inspect
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(1)
assert "batch_size" in inspect.signature(DataLoader.__init__).parameters  # as Lightning reads it


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.ReLU()) for _ in range(3))

    def forward(self, rows):
        for layer in self.layers:
            rows = checkpoint(layer, rows, use_reentrant=False)
        return rows


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(4_000, 32)), batch_size=int(sys.argv[1]))
while True:
    for number, (rows,) in enumerate(loader):
        (model(rows) - rows).square().mean().div(4).backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
