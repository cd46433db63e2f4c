"""Two epochs over data with a heavy tail, in the way that a case says; evaluates and saves after each.

python heavy_tail.py BATCH_SIZE FOLDER CASE
"""

import copy
import sys
from pathlib import Path

import torch
from torch import nn

ROWS, LONGEST, WORDS = 4_000, 400, 1_000
generator = torch.Generator().manual_seed(1)


def lengths_of(case):
    if case == "pareto":
        found = 8 * (1 - torch.rand(ROWS, generator=generator)) ** -0.9
    elif case == "one_outlier":
        found = torch.randint(8, 48, (ROWS,), generator=generator)
        found[ROWS * 3 // 4] = LONGEST
    else:
        found = torch.randn(ROWS, generator=generator).mul(0.7).add(3.2).exp()
    found = found.long().clamp(4, LONGEST).tolist()
    return sorted(found) if case == "longest_last" else found


class Tagger(nn.Module):
    """Scores each token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.body, self.head = nn.Embedding(WORDS, 32), nn.Linear(32, 96), nn.Linear(96, 16)

    def forward(self, ids, others=None):
        scores = self.head(self.body(self.embedding(ids)).relu())
        return scores if others is None else scores.mean(1) + self.forward(others).mean(1)


class Pictures(nn.Module):
    """Scores each pixel of pictures that are padded to the largest."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 2, 1)

    def forward(self, pictures):
        return self.head(self.body(pictures).relu())


class Grouped(torch.utils.data.Sampler):
    """Rows of like length follow each other, the groups in random order."""

    def __init__(self, lengths, batch_size) -> None:
        self.order = sorted(range(len(lengths)), key=lengths.__getitem__)
        self.batch_size = batch_size

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self):
        groups = [self.order[at : at + self.batch_size] for at in range(0, len(self.order), self.batch_size)]
        return iter([row for number in torch.randperm(len(groups)).tolist() for row in groups[number]])


def padded(rows):
    return (nn.utils.rnn.pad_sequence(rows, batch_first=True),)


def padded_parts(rows):
    return tuple(nn.utils.rnn.pad_sequence(each, batch_first=True) for each in zip(*rows, strict=True))


def padded_pictures(rows):
    side = max(each.shape[-1] for each in rows)
    return (
        torch.stack([nn.functional.pad(each, (0, side - each.shape[-1], 0, side - each.shape[-1])) for each in rows]),
    )


def main(batch_size, folder, case):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    lengths = lengths_of(case)
    data = [torch.randint(1, WORDS, (n,), generator=generator) for n in lengths]
    collate, model = padded, Tagger()
    if case == "two_parts":
        data = [(each, data[(number * 7 + 3) % ROWS]) for number, each in enumerate(data)]
        collate = padded_parts
    if case == "images":
        data = [torch.rand(3, 8 + n // 8, 8 + n // 8, generator=generator) for n in lengths]
        collate, model = padded_pictures, Pictures()
    order = {"sampler": Grouped(lengths, batch_size)} if case == "grouped" else {"shuffle": case != "longest_last"}
    loader = torch.utils.data.DataLoader(data, batch_size=batch_size, collate_fn=collate, **order)
    held_out = 100 if case == "larger_evaluation" else 16
    checks = torch.utils.data.DataLoader(data, batch_size=held_out, collate_fn=collate)
    optimizer = torch.optim.AdamW(model.parameters())
    micro_batches = 4 if case == "accumulation" else 1
    average, best = None, None
    for epoch in range(2):
        model.train()
        for number, batch in enumerate(loader, 1):
            outputs = model(*batch)
            outputs.square().mean().backward()
            if number % micro_batches == 0:
                optimizer.step()
                optimizer.zero_grad()
        if case == "average_later" and epoch == 0:
            average = torch.optim.swa_utils.AveragedModel(model)
        model.eval()
        kept = []
        with torch.no_grad():
            for batch in checks:
                outputs = model(*batch)
                kept.append(outputs if case == "kept_outputs" else outputs.sum())
        if case == "best_copy":
            best = copy.deepcopy(model)
        torch.save((best or average or model).state_dict(), Path(folder) / "model.pt")


main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
