"""A training whose rows are cropped, mirrored and scaled one by one in Python, as many small data sets are."""

import random
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
SIDE = 24


class Pictures(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        self.rows = torch.randint(0, 256, (2_000, 28 * 28), generator=generator).tolist()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        left, top = number % 4, number // 4 % 4
        row = self.rows[number]
        lines = [row[28 * (top + y) + left : 28 * (top + y) + left + SIDE] for y in range(SIDE)]
        if random.Random(number).random() < 0.5:
            lines = [line[::-1] for line in lines]
        return torch.tensor([[(value / 255 - 0.5) / 0.25 for value in line] for line in lines]), number % 10


torch.manual_seed(1)
model = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Pictures(), batch_size=int(sys.argv[1]), shuffle=True)
for _ in range(100):
    for pictures, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pictures), labels).backward()
        optimizer.step()
