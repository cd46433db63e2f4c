"""Trains on the points of rays, without a DataLoader: the batch is an object of its own, of eight points a ray."""

import sys
from dataclasses import dataclass

import torch


@dataclass
class Rays:
    points: torch.Tensor


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.colour = torch.nn.Linear(3, 64)

    def forward(self, rays):
        return self.colour(rays.points)


model = Field()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    optimizer.zero_grad()
    model(Rays(torch.randn(int(sys.argv[1]) * 8, 3))).square().mean().backward()
    optimizer.step()
