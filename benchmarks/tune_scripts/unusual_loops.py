"""Two epochs in one of the ways people write loops and data sets that bear less than a plain one.

python unusual_loops.py BATCH_SIZE CASE
"""

import random
import sqlite3
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

torch.set_num_threads(1)
torch.manual_seed(1)
batch_size, case = int(sys.argv[1]), sys.argv[2]
order = torch.Generator().manual_seed(1)


def lengths_of(rows, longest):
    lengths = torch.randint(8, 40, (rows,), generator=order).tolist()
    lengths[rows // 2] = longest
    return lengths


class Rows(Dataset):
    """Rows of numbers; the connection is opened when the first row is read."""

    def __init__(self, lengths) -> None:
        self.lengths, self.connection = lengths, None

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row):
        if case == "opens_later":
            self.connection = self.connection or sqlite3.connect(":memory:")
            self.connection.execute("select 1").fetchone()
        length = random.randint(8, 60) if case == "random_rows" else self.lengths[row]
        return torch.full((length,), row + 1)


class TokenBatches(Sampler):
    """Batches of its own; its `batch_size` is a number of tokens."""

    def __init__(self, rows, size) -> None:
        self.rows, self.size, self.batch_size = rows, size, 1_000

    def __len__(self) -> int:
        return self.rows // self.size

    def __iter__(self):
        rows = torch.randperm(self.rows).tolist()
        return iter([rows[at * self.size : (at + 1) * self.size] for at in range(len(self))])


def padded(rows):
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def in_order(rows):
    numbers = [int(row[0]) for row in rows]
    assert numbers == list(range(numbers[0], numbers[0] + len(rows))), "these rows do not follow each other"
    return padded(rows)


def loader_of(data, **options):
    return DataLoader(data, batch_size=batch_size, collate_fn=in_order if case == "ordered" else padded, **options)


model = nn.Sequential(nn.Embedding(1_000, 16), nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 8))
optimizer = torch.optim.Adam(model.parameters())


def train(batch):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()


rows, held_out = Rows(lengths_of(400, 120)), Rows(lengths_of(30, 50))
loader, checks = loader_of(rows, shuffle=case != "ordered"), loader_of(held_out)
if case == "token_batches":
    loader = DataLoader(rows, batch_sampler=TokenBatches(400, batch_size), collate_fn=padded)
for epoch in range(2):
    if case == "new_data":  # the first is freed, and its address may be that of the next
        rows, loader = None, None
        loader = loader_of(Rows(lengths_of(400 - 100 * epoch, 120)))
    if case == "counted":
        batches = iter(loader)
        for _ in range(len(loader)):
            train(next(batches))
    else:
        seen = torch.zeros(len(loader))
        for number, batch in enumerate(loader):
            train(batch)
            seen[number] += 1
    if case == "new_data":
        loader, checks = None, None
        checks = loader_of(Rows(lengths_of(30, 50)))
    answers = torch.zeros(30)
    at = 0
    with torch.no_grad():
        for batch in checks:
            answers[at : at + len(batch)] = model(batch).mean((1, 2))
            at += len(batch)
    assert at == 30
