"""The optimizers on offer: which class of which library, with which options. Loads no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One choice. `class_name` None: no step.

    `state_copies` is the least state it holds on the device, in copies of the weights. `unpaged` is the optimizer with
    the same update, where this one pages its state: that is unified memory, which the driver moves between device
    and host. `has_modes`: `train()` must be called before its steps, `eval()` before the weights are used or stored.
    """

    label: str
    class_name: str | None
    state_copies: float
    options: Mapping[str, float | bool] = field(default_factory=dict)
    module: str = "torch.optim"
    unpaged: str | None = None
    has_modes: bool = False

    @property
    def path(self) -> str:
        """Write "torch.optim.AdamW"."""
        return f"{self.module}.{self.class_name}"

    @property
    def library(self) -> str:
        return self.module.partition(".")[0]


_BITSANDBYTES = "bitsandbytes.optim"
OPTIMIZERS = {
    "none": Optimizer("none (forward and backward only)", None, 0),
    "sgd": Optimizer("SGD", "SGD", 0),
    "momentum": Optimizer("SGD with momentum", "SGD", 1, {"momentum": 0.9}),
    "adam": Optimizer("Adam", "Adam", 2),
    "adamw": Optimizer("AdamW", "AdamW", 2),
    "adamw-fused": Optimizer("AdamW, fused", "AdamW", 2, {"fused": True}),
    "adamw-8bit": Optimizer("AdamW, 8-bit state", "AdamW8bit", 0.5, module=_BITSANDBYTES),
    "paged-adamw-8bit": Optimizer(
        "AdamW, paged 8-bit state", "PagedAdamW8bit", 0, module=_BITSANDBYTES, unpaged="adamw-8bit"
    ),
    "paged-adamw-32bit": Optimizer(
        "AdamW, paged 32-bit state", "PagedAdamW32bit", 0, module=_BITSANDBYTES, unpaged="adamw"
    ),
    "schedule-free-adamw": Optimizer(
        "AdamW, schedule-free", "AdamWScheduleFree", 2, module="schedulefree", has_modes=True
    ),
    "lion": Optimizer("Lion", "Lion", 1, module=_BITSANDBYTES),
    "lion-8bit": Optimizer("Lion, 8-bit state", "Lion8bit", 0.25, module=_BITSANDBYTES),
    "rmsprop": Optimizer("RMSprop", "RMSprop", 1),
    "adagrad": Optimizer("Adagrad", "Adagrad", 1),
    "adafactor": Optimizer("Adafactor", "Adafactor", 0),
}
"""All other options are the library's defaults: torch.optim uses foreach where it would choose it itself."""
