"""The optimizers on offer: which class of which library, with which options. Loads no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One choice. `state_copies` is the least state it holds, in copies of the weights; `class_name` None: no step."""

    label: str
    class_name: str | None
    state_copies: float
    options: Mapping[str, float | bool] = field(default_factory=dict)
    module: str = "torch.optim"

    @property
    def path(self) -> str:
        """Write "torch.optim.AdamW"."""
        return f"{self.module}.{self.class_name}"


OPTIMIZERS = {
    "none": Optimizer("none (forward and backward only)", None, 0),
    "sgd": Optimizer("SGD", "SGD", 0),
    "momentum": Optimizer("SGD with momentum", "SGD", 1, {"momentum": 0.9}),
    "adam": Optimizer("Adam", "Adam", 2),
    "adamw": Optimizer("AdamW", "AdamW", 2),
    "adamw-fused": Optimizer("AdamW, fused", "AdamW", 2, {"fused": True}),
    "adamw-8bit": Optimizer("AdamW, 8-bit state", "AdamW8bit", 0.5, module="bitsandbytes.optim"),
    "rmsprop": Optimizer("RMSprop", "RMSprop", 1),
    "adagrad": Optimizer("Adagrad", "Adagrad", 1),
    "adafactor": Optimizer("Adafactor", "Adafactor", 0),
}
"""All other options are the library's defaults: torch.optim uses foreach where it would choose it itself."""
