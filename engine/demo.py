"""A small training in plain PyTorch, which the command `demo` tunes: words are embedded, averaged and classified."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

WORDS, LENGTH, WIDTH = 5_000, 32, 128

torch.set_num_threads(1)  # so other programs disturb its speed little


def make_step(batch_size: int) -> Callable[[], None]:
    texts, labels = torch.randint(WORDS, (batch_size, LENGTH)), torch.randint(2, (batch_size,))
    embed, classify = nn.Sequential(nn.Embedding(WORDS, WIDTH), nn.ReLU()), nn.Linear(WIDTH, 2)
    optimizer = torch.optim.AdamW([*embed.parameters(), *classify.parameters()])

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(classify(embed(texts).mean(dim=1)), labels).backward()
        optimizer.step()

    return step
