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
    """Make a new optimizer for the trained parameters, in training mode; None for "none"."""
    make, chosen = optimizer_class(name), OPTIMIZERS[name]
    if make is None:
        return None
    learned = [parameter for parameter in parameters if parameter.requires_grad]
    made: Any = make(learned, lr=LEARNING_RATE, **chosen.options)
    if chosen.has_modes:
        made.train()
    optimizer: torch.optim.Optimizer = made
    return optimizer


OfEachWeight = dict[nn.Parameter, torch.optim.Optimizer | None]


def optimizers_of_weights(name: str, parameters: Iterable[nn.Parameter], *, is_on_host: bool) -> OfEachWeight:
    """Make an optimizer for each trained weight; `is_on_host`: one weight's state at a time is on the device."""
    learned = [parameter for parameter in parameters if parameter.requires_grad]
    made = {parameter: make_optimizer(name, [parameter]) for parameter in learned}
    for parameter, optimizer in made.items():
        if is_on_host and optimizer is not None:
            device = parameter.device
            optimizer.register_step_pre_hook(lambda stepped, *_, device=device: _fetch_state(stepped, device))
            optimizer.register_step_post_hook(lambda stepped, *_: _store_state(stepped))
    return made


def _fetch_state(optimizer: torch.optim.Optimizer, device: torch.device) -> None:
    for state in optimizer.state.values():
        state.update({name: value.to(device, non_blocking=True) for name, value in _arrays(state)})


def _store_state(optimizer: torch.optim.Optimizer) -> None:
    """Copy the state into pinned memory, from which the next step's copy is fast. Without a card nothing is pinned."""
    pins = torch.accelerator.is_available()
    for state in optimizer.state.values():
        for name, value in _arrays(state):
            state[name] = torch.empty_like(value, device="cpu", pin_memory=pins).copy_(value)


def _arrays(state: dict[str, Any]) -> list[tuple[str, Tensor]]:
    """Return the tensors of a state but its counter of steps, which stays where it is."""
    return [(name, value) for name, value in state.items() if isinstance(value, Tensor) and value.dim()]


class StepInBackward:
    """An optimizer for each weight, which steps and frees the gradient as soon as it is complete, as LOMO does."""

    def __init__(self, optimizers: OfEachWeight) -> None:
        self.optimizers = optimizers

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
