"""Halves its batch where it fails, once for all (`keep`) or for each batch anew (`again`)."""

import sys

import torch
from mlp import network, rows

size, keeps = int(sys.argv[1]), sys.argv[2] == "keep"
model = network()
optimizer = torch.optim.AdamW(model.parameters())


def train(inputs, labels):
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    if len(inputs) > 100:
        raise RuntimeError("this machine takes no more than 100")
    loss.backward()


for inputs, labels in torch.utils.data.DataLoader(rows(), batch_size=size):
    optimizer.zero_grad()
    parts = size
    while True:
        try:
            for part in zip(inputs.split(parts), labels.split(parts), strict=True):
                train(*part)
            break
        except RuntimeError:
            parts //= 2
    size = parts if keeps else size
    optimizer.step()
