"""A training whose model runs itself in its constructor, as YOLO's does, and calls lazy and vmapped parts.

    built_by_a_pass.py BATCH_SIZE [own|shadow|grouped]

`shadow` keeps an average of the weights in a list, as diffusers does; `grouped` draws lists of images by a sampler of
its own, as torchvision's detection references do.
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

size, kind = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(1)
torch.set_num_threads(1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
        self.unused = nn.LazyLinear(4)
        self.stride = 1
        self.forward(torch.zeros(1, 256))
        self.layers(torch.zeros(1, 256))

    def forward(self, rows):
        rows = torch.stack(list(rows)).flatten(1) if isinstance(rows, (list, tuple)) else rows
        return self.layers(rows)


class Grouped(torch.utils.data.Sampler):
    """Batches of rows of one group."""

    def __iter__(self):
        yield from (list(range(begin, begin + size)) for begin in range(0, len(data) - size, size))


model = Model()
data = torch.randn(16_384, 1, 256)  # 16 MiB that no device would hold
if kind == "grouped":
    loader = DataLoader(data, batch_sampler=Grouped(), collate_fn=list)
else:
    loader = DataLoader(data.flatten(1), batch_size=size)
optimizer = torch.optim.SGD(model.layers.parameters(), lr=0.01)
shadow = [each.detach().clone() for each in model.layers.parameters()] if kind == "shadow" else None
torch.func.vmap(lambda row: model.layers(row))(data[:4, 0])
for _ in range(100):
    for rows in loader:
        optimizer.zero_grad()
        model(rows).square().mean().backward()
        optimizer.step()
        for average, weight in zip(shadow or [], model.layers.parameters(), strict=False):
            average.lerp_(weight.detach(), 0.01)
