"""An endless data set that is iterated, as streams are."""

import sys

import torch
from mlp import FEATURES, network


class Stream(torch.utils.data.IterableDataset):
    """Rows without an end."""

    def __iter__(self):
        while True:
            yield torch.randn(FEATURES), int(torch.randint(0, 10, ()))


model = network()
optimizer = torch.optim.AdamW(model.parameters())
for inputs, labels in torch.utils.data.DataLoader(Stream(), batch_size=int(sys.argv[1])):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
