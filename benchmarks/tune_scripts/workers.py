"""A loader with worker processes: forked ones, or persistent ones that are spawned."""

import sys

import torch
from mlp import network, rows


def main():
    options = {"num_workers": int(sys.argv[2])}
    if "spawn" in sys.argv:
        options |= {"persistent_workers": True, "multiprocessing_context": "spawn"}
    loader = torch.utils.data.DataLoader(rows(), batch_size=int(sys.argv[1]), **options)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(100):
        for inputs, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
