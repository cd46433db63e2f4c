"""A training whose libraries look for torch before they import it, as transformers, datasets and evaluate do."""

import importlib
import importlib.util
import sys
from types import ModuleType

HAS_TORCH = [importlib.util.find_spec(name) is not None for name in ("torch", "torch", "tensorflow", "torch")][0]


class LazyLibrary(ModuleType):
    """Imports torch when one of its names is used first."""

    def __getattr__(self, name):
        if not HAS_TORCH or importlib.util.find_spec("torch") is None:
            raise ImportError("torch is needed")
        return getattr(importlib.import_module("torch"), name)


library = sys.modules["library"] = LazyLibrary("library")
from library import nn, optim, randn, utils  # noqa: E402 - after the looks

loader = utils.data.DataLoader(randn(2_000, 16), batch_size=int(sys.argv[1]), shuffle=True)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = optim.AdamW(model.parameters())
for rows in loader:
    model(rows).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
