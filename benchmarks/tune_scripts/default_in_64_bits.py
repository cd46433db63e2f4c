"""A regression whose first line makes all numbers 64 bits wide, as solvers of equations like to."""

import sys

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
torch.manual_seed(0)


class Field(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.out = nn.Linear(width, 1)

    def forward(self, points):
        return self.out(self.layers(points))


model = Field()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
batch_size = int(sys.argv[1])
for _ in range(20_000):
    points = torch.rand(batch_size, 3)
    target = torch.sin(points.sum(dim=1, keepdim=True))
    loss = (model(points) - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
