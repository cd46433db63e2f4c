"""A training of thousands of small tensors, whose optimizer visits one after the other; it keeps its batch size."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.scales = nn.ParameterList(nn.Parameter(torch.ones(16)) for _ in range(1_500))

    def forward(self, rows):
        return self.first(rows) * torch.stack(list(self.scales)).mean(0)


model = Model()
optimizer = torch.optim.Adam(model.parameters(), foreach=False)
for _ in range(10_000):
    rows = torch.randn(32, 16)
    optimizer.zero_grad()
    model(rows).square().mean().backward()
    optimizer.step()
