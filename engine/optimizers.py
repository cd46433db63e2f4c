"""The optimizers on offer: which class of torch.optim, with which options. Loads no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One choice. `state_copies` is how many copies of the weights it keeps at least; `torch_class` None: no step."""

    label: str
    torch_class: str | None
    state_copies: int
    options: Mapping[str, float | bool] = field(default_factory=dict)


OPTIMIZERS = {
    "none": Optimizer("none (forward and backward only)", None, 0),
    "sgd": Optimizer("SGD", "SGD", 0),
    "momentum": Optimizer("SGD with momentum", "SGD", 1, {"momentum": 0.9}),
    "adam": Optimizer("Adam", "Adam", 2),
    "adamw": Optimizer("AdamW", "AdamW", 2),
    "adamw-fused": Optimizer("AdamW, fused", "AdamW", 2, {"fused": True}),
    "rmsprop": Optimizer("RMSprop", "RMSprop", 1),
    "adagrad": Optimizer("Adagrad", "Adagrad", 1),
    "adafactor": Optimizer("Adafactor", "Adafactor", 0),
}
"""Made with PyTorch's own defaults beside the options: foreach where it would choose it."""
