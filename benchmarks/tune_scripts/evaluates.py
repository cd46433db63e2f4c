"""Evaluates with a larger batch, before the training or within it."""

import sys

import torch
from mlp import network, rows

model = network()
optimizer = torch.optim.AdamW(model.parameters())
checks = torch.utils.data.DataLoader(rows(2_000), batch_size=1_000)


def evaluate():
    model.eval()
    for inputs, _ in checks:
        with torch.no_grad():
            model(inputs)
    model.train()


if sys.argv[2] == "before":
    evaluate()
for number, (inputs, labels) in enumerate(torch.utils.data.DataLoader(rows(), batch_size=int(sys.argv[1]))):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    if sys.argv[2] == "within" and number % 2:
        evaluate()
