"""Data and network that the scripts beside it train."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)
FEATURES = 64


def network() -> nn.Module:
    """Return a small MLP whose activations grow with the batch."""
    return nn.Sequential(nn.Linear(FEATURES, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def rows(count: int = 20_000) -> torch.utils.data.TensorDataset:
    """Return random rows with their labels."""
    return torch.utils.data.TensorDataset(torch.randn(count, FEATURES), torch.randint(0, 10, (count,)))
