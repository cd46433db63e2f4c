"""Loops over pictures as people write them in 2026, small.

python picture_loops.py CASE --batch-size N
"""

import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset

ROWS, SIDE, QUEUE = 6_000, 32, 4_096


class Pictures(Dataset):
    """Random pictures of one side with a label and a mask; a crop has less, and there are several of each."""

    def __init__(self, side=SIDE, crops=0):
        self.side, self.crops = side, crops

    def __len__(self):
        return ROWS

    def __getitem__(self, row):
        sides = (random.randint(self.side, 2 * self.side), self.side) if self.crops else (self.side, self.side)
        picture = torch.rand(3, *sides)
        sample = {"image": picture, "label": torch.tensor(row % 10), "mask": (picture[0] > 0.5).long()}
        if not self.crops:
            return sample
        tops = [random.randint(0, sides[0] - self.side // 2) for _ in range(self.crops)]
        cut = self.side // 2
        return [{k: v[..., top : top + cut, :cut] if v.dim() else v for k, v in sample.items()} for top in tops]


def listed(samples):
    """Collate samples of several crops each, as MONAI's list_data_collate does."""
    flat = [crop for sample in samples for crop in sample]
    return {name: torch.stack([each[name] for each in flat]) for name in flat[0]}


def block(before, after, stride=1):
    return nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.SiLU())


class Encoder(nn.Module):
    """Pictures to vectors, wherever their sides are."""

    def __init__(self, width=8, out=10):
        super().__init__()
        self.body = nn.Sequential(block(3, width), block(width, 2 * width, 2), block(2 * width, 4 * width, 2))
        self.head = nn.Linear(4 * width, out)

    def forward(self, pictures):
        return self.head(self.body(pictures).mean((2, 3)))


class UNet(nn.Module):
    """A small U-Net with a head at each scale."""

    def __init__(self, width=8):
        super().__init__()
        self.down = nn.ModuleList([block(3, width), block(width, 2 * width, 2), block(2 * width, 4 * width, 2)])
        self.up = nn.ModuleList([block(6 * width, 2 * width), block(3 * width, width)])
        self.heads = nn.ModuleList([nn.Conv2d(each * width, 2, 1) for each in (4, 2, 1)])

    def forward(self, pictures):
        kept = []
        for down in self.down:
            pictures = down(pictures)
            kept.append(pictures)
        answers = [self.heads[0](kept.pop())]
        for up, head in zip(self.up, self.heads[1:], strict=True):
            pictures = up(torch.cat([F.interpolate(pictures, scale_factor=2), kept.pop()], 1))
            answers.append(head(pictures))
        return answers[::-1] if self.training else answers[-1]


class MoCo(nn.Module):
    """Contrast with a queue of keys, as in facebookresearch/moco; its queue takes whole batches."""

    def __init__(self, divides):
        super().__init__()
        self.divides = divides
        self.query, self.key = Encoder(out=64), Encoder(out=64)
        self.key.requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(64, QUEUE), dim=0))
        self.register_buffer("at", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def enqueue(self, keys):
        if self.divides:
            assert len(self.queue.T) % keys.shape[0] == 0  # for simplicity
        places = (int(self.at) + torch.arange(len(keys))) % QUEUE
        self.queue[:, places] = keys.T
        self.at[0] = (int(self.at) + len(keys)) % QUEUE

    def forward(self, one, other):
        q = F.normalize(self.query(one), dim=1)
        with torch.no_grad():
            for ours, theirs in zip(self.key.parameters(), self.query.parameters(), strict=True):
                ours.mul_(0.99).add_(theirs, alpha=0.01)
            k = F.normalize(self.key(other), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue.clone()], 1) / 0.2
        self.enqueue(k)
        return logits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=100)
    args = parser.parse_args()
    case = args.case
    torch.set_num_threads(1)
    model = UNet() if case in ("segmentation", "deep_supervision") else Encoder()
    if case.startswith("moco"):
        model = MoCo(case == "moco_divides")
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999)) if case == "progressive" else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = Pictures(crops=2) if case == "segmentation" else Pictures()
    collate = listed if case == "segmentation" else None
    loader = DataLoader(data, args.batch_size, shuffle=True, drop_last=True, collate_fn=collate)
    for epoch in range(args.epochs):
        if case == "progressive":
            data.side = min(32 + 16 * epoch, 64)
        model.train()
        side = SIDE
        for number, batch in enumerate(loader):
            pictures, labels = batch["image"], batch["label"]
            if case == "multiscale" and number % 10 == 0:
                side = random.choice(range(SIDE, 2 * SIDE + 1, 8))
            if side != SIDE:
                pictures = F.interpolate(pictures, (side, side), mode="bilinear")
            if case == "progressive":  # with mixup, as timm has it
                share = random.betavariate(0.2, 0.2)
                pictures = pictures * share + pictures.flip(0) * (1 - share)
                labels = F.one_hot(labels, 10) * share + F.one_hot(labels, 10).flip(0) * (1 - share)
                loss = F.cross_entropy(model(pictures), labels)
            elif case.startswith("moco"):
                logits = model(pictures, pictures.flip(3))
                loss = F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))
            elif case in ("segmentation", "deep_supervision"):
                answers = model(pictures)
                heads = answers if case == "deep_supervision" else answers[:1]
                sizes = [answer.shape[-2:] for answer in heads]
                masks = [F.interpolate(batch["mask"][:, None].float(), size)[:, 0].long() for size in sizes]
                losses = [F.cross_entropy(answer, mask) for answer, mask in zip(heads, masks, strict=True)]
                loss = sum(each / 2**place for place, each in enumerate(losses))
            else:
                loss = F.cross_entropy(model(pictures), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if average is not None:
                average.update_parameters(model)


if __name__ == "__main__":
    main()
