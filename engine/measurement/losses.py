"""Trains a few steps whose losses can be compared with those of other settings. Needs torch.

Each step's batch comes from a seed of its own, and dropout is off, in its modules and in the numbers that kernels read:
masks of other kernels would differ by chance. The model stays in the mode of its training, so checkpointing works.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..errors import EngineError
from ..facts.losses import Losses
from ..facts.progress import Progress, no_progress
from ..facts.result import Outcome
from .probe import Bench, failure_of
from .step import TrainingStep

FIRST_SEED = 1_000


def train_losses(bench: Bench, batch_size: int, steps: int, progress: Progress = no_progress) -> Losses:
    """Return the loss of each of the steps. What a step raises is returned; after it, use this process no more."""
    without_dropout(bench.built.model)
    found: list[float] = []
    try:
        step = TrainingStep(bench.spec, bench.built, bench.device.torch_device)
        for number in range(steps):
            progress("losses", number + 1)
            torch.manual_seed(FIRST_SEED + number)
            step.begin()
            step(batch_size)
            assert step.loss is not None
            found.append(step.loss.item())
    except EngineError:
        raise
    except Exception as exc:  # noqa: BLE001 - the classifier distinguishes errors, and the answer stores them
        return Losses(**failure_of(exc, bench.device))
    return Losses(Outcome.FITS, tuple(found))


def without_dropout(model: nn.Module) -> None:
    for module in model.modules():
        for holder in (module, getattr(module, "config", None)):
            for name, value in list(getattr(holder, "__dict__", {}).items()):
                if _is_dropout(name, value) or (name == "p" and isinstance(module, nn.modules.dropout._DropoutNd)):
                    setattr(holder, name, 0.0)


def _is_dropout(name: str, value: Any) -> bool:
    return isinstance(value, float) and ("drop" in name or name.endswith("_pdrop"))
