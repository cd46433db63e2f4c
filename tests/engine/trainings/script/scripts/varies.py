"""A training whose steps do not all compute the same, in the way that is named; none is seen in its batches."""

import random
import sys

import torch
from torch import nn

size, way = int(sys.argv[1]), sys.argv[2]
random.seed(3)
sizes = random.sample(range(8, 56, 8), 6) * 20
loader = torch.utils.data.DataLoader(torch.zeros(64, 3, 8, 8), batch_size=size, drop_last=True)


class Drawn(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(64, 192))
        self.width = 64

    def forward(self, images):
        rows = images.mean(2, keepdim=True).expand(-1, -1, 8, -1).flatten(1) @ self.weight[: self.width].T
        return rows.sigmoid().square().mean()


def client():
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 8))


model = client() if way == "clients" else Drawn()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
done = 0
while done < 60:
    for batch in loader:
        if way == "clients" and done % 2 == 0:
            model = client()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        if way == "widths":
            model.width = sizes[done]
        if way == "sides":
            batch = nn.functional.interpolate(batch, size=(sizes[done], 8))
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        done += 1
