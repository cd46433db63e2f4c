"""A training that wants its total batch to be divisible by the size, as nanochat does, and says nothing else."""

import sys

import torch

size, total = int(sys.argv[1]), 512
assert total % size == 0
data = torch.utils.data.TensorDataset(torch.randn(4096, 64), torch.randint(0, 4, (4096,)))
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 4))
optimizer = torch.optim.SGD(model.parameters())
for inputs, labels in torch.utils.data.DataLoader(data, batch_size=size):
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
