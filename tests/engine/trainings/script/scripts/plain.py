"""A plain training loop with argparse: an MLP on random data, losses printed with all their digits."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--samples", type=int, default=20_000)
parser.add_argument("--ignore", action="store_true")
parser.add_argument("--steps", type=int, default=1_000)
parser.add_argument("--fail-above", type=int)
parser.add_argument("--hang-above", type=int)
options = parser.parse_args()

torch.manual_seed(1)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(options.samples, 64), torch.randint(0, 10, (options.samples,)))
loader = DataLoader(data, batch_size=8 if options.ignore else options.batch_size, shuffle=True)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Dropout(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.AdamW(model.parameters())
if options.fail_above and options.batch_size > options.fail_above:
    raise ValueError("this script takes no such batch")
if options.hang_above and options.batch_size > options.hang_above:
    import time

    time.sleep(3_600)
step = 0
while step < options.steps:
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        print(step, loss.item().hex(), flush=True)
        if step >= options.steps:
            break
