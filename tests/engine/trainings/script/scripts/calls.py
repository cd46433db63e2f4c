"""A network that a step calls several times, on rows that come from no loader.

    calls.py BATCH_SIZE unrolled|accumulated|closure|threads

`unrolled` feeds a cell its own state 5 times, `accumulated` goes back 3 times, and the `closure` of SAM's kind twice.
"""

import sys
import threading

import torch
from torch import nn

size, kind = int(sys.argv[1]), sys.argv[2]


def train(steps):
    model = nn.GRUCell(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        rows, state = torch.randn(size, 16), torch.zeros(size, 16)
        optimizer.zero_grad()
        if kind == "unrolled":
            for _ in range(5):
                state = model(state, state)
            state.sum().backward()
        for _ in range(2 if kind == "closure" else 0):
            model(rows, state).sum().backward()
        for _ in range(3 if kind == "accumulated" else 0):
            rows = torch.randn(size, 16)
            model(rows, state).sum().backward()
        if kind == "threads":
            model(rows, state).sum().backward()
        optimizer.step()


trainings = [threading.Thread(target=train, args=[30]) for _ in range(2 if kind == "threads" else 1)]
for training in trainings:
    training.start()
for training in trainings:
    training.join()
