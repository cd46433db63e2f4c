"""Trainings whose model is given other numbers of items than the loader draws rows: graphs, pairs, lists of images."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--kind", choices=("graphs", "pairs", "images"), default="graphs")
parser.add_argument("--batch-size", type=int, default=8)
options = parser.parse_args()
torch.manual_seed(1)
torch.set_num_threads(1)


def graphs(rows):
    """Nodes of several graphs in one table, and the graph of each, as PyTorch Geometric has them."""
    return torch.cat(rows), torch.repeat_interleave(torch.arange(len(rows)), torch.tensor([len(row) for row in rows]))


def pairs(rows):
    """The chosen and the rejected answers in one tensor, as TRL's DPO has them."""
    return torch.cat([torch.stack(rows), -torch.stack(rows)]), torch.arange(len(rows)).repeat(2)


class Detector(nn.Module):
    """Takes a list of images, as torchvision's detection models do."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, images):
        return self.layers(torch.stack(images))


sizes = torch.randint(10, 30, (4_096,)) if options.kind == "graphs" else torch.full((4_096,), 64)
data = [torch.randn(size, 64) if options.kind == "graphs" else torch.randn(64) for size in sizes.tolist()]
collate = {"graphs": graphs, "pairs": pairs, "images": lambda rows: (list(rows), None)}[options.kind]
loader = DataLoader(data, batch_size=options.batch_size, shuffle=True, collate_fn=collate)
model = Detector() if options.kind == "images" else Detector().layers
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(100):
    for inputs, groups in loader:
        found = model(inputs)
        if groups is not None:
            found = torch.zeros(options.batch_size, 1).index_add(0, groups, found)
        optimizer.zero_grad()
        found.square().mean().backward()
        optimizer.step()
