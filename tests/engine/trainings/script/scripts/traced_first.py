"""A training that first counts operations, and traces its model, in train mode, as YOLO, timm and litgpt do."""

import torch
from torch import nn

torch.manual_seed(1)


def make():
    return nn.Sequential(nn.Sequential(nn.Linear(16, 16), nn.Tanh()), nn.Linear(16, 1))


with torch.device("meta"):
    make()(torch.randn(4, 16)).mean().backward()
model = make()
torch.jit.trace(model, torch.randn(3, 16))
torch.fx.symbolic_trace(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(10_000):
    optimizer.zero_grad()
    model(torch.randn(8, 16)).square().mean().backward()
    optimizer.step()
