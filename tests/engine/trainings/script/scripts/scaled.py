"""A training with a GradScaler whose first steps overflow and are left out, and autocast within its model."""

import torch
from torch import nn

torch.manual_seed(1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 1))

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, rows):
        return self.layers(rows).float()


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
for _ in range(10_000):
    optimizer.zero_grad()
    scaler.scale(model(torch.randn(8, 16) * 4).square().mean()).backward()
    scaler.step(optimizer)
    scaler.update()
