"""An autoencoder whose last reconstructions are kept to be drawn at the end of an epoch."""

import sys
from collections import deque

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)
SIDE = 96


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 16), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(16, 3 * SIDE * SIDE), nn.Unflatten(1, (3, SIDE, SIDE)))

    def forward(self, images):
        return self.decoder(self.encoder(images))


images = torch.rand(256, 3, SIDE, SIDE)
batch_size = int(sys.argv[1])
model = Autoencoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
to_draw = deque(maxlen=8)
for epoch in range(1_000):
    for batch in images[torch.randperm(len(images))].split(batch_size):
        reconstruction = model(batch)
        loss = nn.functional.mse_loss(reconstruction, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        to_draw.append(reconstruction)
    print(epoch, to_draw[-1].mean().item())
