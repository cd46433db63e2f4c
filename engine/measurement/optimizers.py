"""Makes the optimizer of a training: imports its library and says what is missing. Needs torch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SpecError
from ..settings.optimizers import OPTIMIZERS

LEARNING_RATE = 1e-5


def make_optimizer(name: str, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer | None:
    """Make a new optimizer for those of the parameters that are trained, in training mode; None for "none"."""
    make, chosen = optimizer_class(name), OPTIMIZERS[name]
    if make is None:
        return None
    learned = [parameter for parameter in parameters if parameter.requires_grad]
    made: Any = make(learned, lr=LEARNING_RATE, **chosen.options)
    if chosen.has_modes:
        made.train()
    optimizer: torch.optim.Optimizer = made
    return optimizer


class StepInBackward:
    """An optimizer for each weight, which steps as soon as its gradient is complete; the gradient is then freed.

    This is PyTorch's tutorial on fusing the optimizer step into the backward pass, and what LOMO does.
    """

    def __init__(self, name: str, parameters: Iterable[nn.Parameter]) -> None:
        learned = [parameter for parameter in parameters if parameter.requires_grad]
        self.optimizers = {parameter: make_optimizer(name, [parameter]) for parameter in learned}

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Step in the backward passes of the context alone: the model outlives this training."""
        with ExitStack() as stack:
            for parameter in self.optimizers:
                stack.callback(parameter.register_post_accumulate_grad_hook(self._step).remove)
            yield

    def _step(self, parameter: Any) -> None:
        if (optimizer := self.optimizers[parameter]) is not None:
            optimizer.step()
            optimizer.zero_grad()


def optimizer_class(name: str) -> Callable[..., torch.optim.Optimizer] | None:
    """Import the library of an optimizer and return its class. Raises SpecError where it is not installed."""
    chosen = OPTIMIZERS[name]
    if chosen.class_name is None:
        return None
    try:
        made: Callable[..., torch.optim.Optimizer] = getattr(importlib.import_module(chosen.module), chosen.class_name)
    except ImportError as exc:
        library = chosen.library
        text = f"{name} needs {library}, which cannot be imported here ({exc}); pip install {library}"
        raise SpecError("optimizer", text) from exc
    return made


def keeps_state(name: str) -> bool:
    """Whether every trained parameter has state after a step. Not known of Adafactor, which keeps less than a copy."""
    chosen = OPTIMIZERS[name]
    return chosen.state_copies > 0 or chosen.unpaged is not None


def state_on(device: torch.device, optimizer: torch.optim.Optimizer | None, parameter: nn.Parameter) -> list[Tensor]:
    """Return the tensors of a parameter's state that lie on the device: paged ones are the host's to PyTorch."""
    state = {} if optimizer is None else optimizer.state.get(parameter, {})
    return [value for value in state.values() if isinstance(value, Tensor) and value.device.type == device.type]
