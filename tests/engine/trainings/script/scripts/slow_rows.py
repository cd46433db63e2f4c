"""A training whose rows are changed by slow Python, one after the other in its own process."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Rows(Dataset):
    """Rows whose change takes 5 ms, as a decoder would that waits for a disk."""

    def __len__(self):
        return 4_000

    def __getitem__(self, number):
        time.sleep(0.005)
        return torch.full((64,), number / 4_000), number % 10


torch.manual_seed(1)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(100):
    for rows, labels in DataLoader(Rows(), batch_size=int(sys.argv[1]), shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
