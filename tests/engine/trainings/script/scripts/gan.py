"""Two optimizers that step in turn, and a batch size read from the environment."""

import os

import torch
from torch import nn

torch.set_num_threads(1)
size = int(os.environ.get("MEMORYMARK_BATCH_SIZE", "16"))
generator = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 64))
critic = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
steps = {net: torch.optim.Adam(net.parameters()) for net in (generator, critic)}
for number in range(1_000):
    real, fake = torch.randn(size, 64), generator(torch.randn(size, 16))
    (critic(fake.detach()).mean() - critic(real).mean()).backward()
    steps[critic].step()
    steps[critic].zero_grad()
    if number % 2:
        (-critic(generator(torch.randn(size, 16))).mean()).backward()
        steps[generator].step()
        steps[generator].zero_grad()
