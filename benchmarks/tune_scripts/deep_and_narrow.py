"""A residual network of 250 narrow blocks: 1,500 small tensors, which the default optimizer of a CPU visits in turn."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)

    def forward(self, rows):
        return rows + self.down(torch.relu(self.up(self.norm(rows))))


model = nn.Sequential(nn.Linear(12, 16), *[Block(16) for _ in range(250)], nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batch_size = int(sys.argv[1])
for _ in range(10_000):
    rows = torch.randn(batch_size, 12)
    loss = nn.functional.mse_loss(model(rows), rows.mean(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
