"""A training on a card; what it is refused it can be made to catch, as some frameworks do."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int)
parser.add_argument("--catch", action="store_true")
parser.add_argument("--device", default="cuda")
parser.add_argument("--rest-on", help="the card of all layers but the first")
parser.add_argument("--dropout", type=float, default=0.0)
options = parser.parse_args()
layers = [nn.Sequential(nn.Linear(1_024, 1_024), nn.ReLU()) for _ in range(8)]
dropout = [nn.Dropout(options.dropout)] if options.dropout else []
model = nn.Sequential(*layers, *dropout).to(options.device)
if options.rest_on:
    model[1:].to(options.rest_on)
    model[0].register_forward_hook(lambda _, __, result: result.to(options.rest_on))
optimizer = torch.optim.AdamW(model.parameters())


def step(size: int) -> None:
    optimizer.zero_grad()
    model(torch.empty(size, 256, 1_024, device=options.device)).sum().backward()
    optimizer.step()


for _ in range(1_000):
    try:
        step(options.batch_size)
    except torch.OutOfMemoryError:
        if not options.catch:
            raise
        step(1)
