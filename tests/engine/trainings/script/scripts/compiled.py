"""A training whose model and optimizer step are compiled, as in PyTorch's tutorial of a compiled optimizer."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--in-place", action="store_true")
parser.add_argument("--batch-size", type=int, default=8)
options = parser.parse_args()
torch.manual_seed(1)
torch.set_num_threads(1)


class Net(nn.Sequential):
    def forward(self, rows):
        return super().forward(rows)


model = Net(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(0.001))
if options.in_place:
    model.compile(fullgraph=True, backend="aot_eager")
compiled = model if options.in_place else torch.compile(model, fullgraph=True, backend="aot_eager")


@torch.compile(fullgraph=False, backend="aot_eager")
def step():
    optimizer.step()


for _ in range(60):
    inputs, labels = torch.randn(options.batch_size, 64), torch.randint(0, 10, (options.batch_size,))
    loss = nn.functional.cross_entropy(compiled(inputs), labels)
    loss.backward()
    step()
    optimizer.zero_grad()
    print(loss.item().hex(), flush=True)
