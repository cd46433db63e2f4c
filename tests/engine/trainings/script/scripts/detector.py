"""A detector as detectron2 and ultralytics train theirs: boxes beside images of several sizes.

    detector.py BATCH_SIZE [described|boxes]

`described` gives the model a list of dicts with an image each, put together from a data set whose rows come one after
the other. `boxes` collates by the names' order, so that the boxes come first, and draws its batches endlessly.
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

size, kind = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(1)
torch.set_num_threads(1)


class Pictures(Dataset):
    def __len__(self):
        return 50

    def __getitem__(self, number):
        boxes = 4 + number % 5
        return {
            "img": torch.randn(3, 16, 16 + number % 3),
            "batch_idx": torch.zeros(boxes),
            "bboxes": torch.rand(boxes, 4),
        }


class Stream(IterableDataset):
    def __init__(self, pictures):
        self.pictures = pictures

    def __iter__(self):
        while True:
            yield from (self.pictures[number] for number in torch.randperm(len(self.pictures)).tolist())


class Endless:
    """As ultralytics' sampler that repeats forever."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from iter(self.sampler)


def collate(rows):
    """As ultralytics': the names in their order."""
    found = {}
    for name in sorted(rows[0]):
        values = [row[name] for row in rows]
        found[name] = torch.stack([v[..., :16] for v in values]) if name == "img" else torch.cat(values)
    return found


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Conv2d(3, 8, 3, padding=1)
        self.forward([{"img": torch.zeros(3, 16, 16)}])

    def forward(self, given):
        images = [each["img"][..., :16] for each in given] if isinstance(given, list) else given["img"]
        images = torch.stack(images) if isinstance(images, list) else images
        return self.backbone(images).square().mean()


def batches():
    if kind == "described":
        rows = iter(DataLoader(Stream(Pictures()), batch_size=None))
        while True:
            yield [next(rows) for _ in range(size)]
    else:
        loader = DataLoader(Pictures(), batch_size=min(size, 50), shuffle=True, num_workers=1, collate_fn=collate)
        object.__setattr__(loader, "batch_sampler", Endless(loader.batch_sampler))
        yield from loader


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for number, batch in enumerate(batches()):
    optimizer.zero_grad()
    model(batch).backward()
    optimizer.step()
    if number > 200:
        break
