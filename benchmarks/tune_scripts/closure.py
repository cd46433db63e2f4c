"""LBFGS, whose step calls a closure as often as it likes."""

import sys

import torch
from mlp import FEATURES, network

model = network()
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, history_size=3, line_search_fn="strong_wolfe")
for _ in range(1_000):
    inputs, labels = torch.randn(int(sys.argv[1]), FEATURES), torch.randint(0, 10, (int(sys.argv[1]),))

    def closure(inputs=inputs, labels=labels):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        return loss

    optimizer.step(closure)
