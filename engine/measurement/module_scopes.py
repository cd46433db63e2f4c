"""Tells at any moment of a training step which module of the model runs. Needs torch.

Forward: hooks before and after each module. Backward: autograd numbers its nodes in the order in which the forward pass
makes them, so the numbers at a module's beginning and end show which nodes belong to it. Nothing is attached to a
tensor, and no reference to one is held.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..facts.memory_breakdown import LOSS

Mark = Callable[[str], AbstractContextManager[Any]]
T = TypeVar("T", bound=Tensor)


def paths_of(model: nn.Module) -> dict[nn.Module, str]:
    """Return the path of every module; the model itself has the name of its class."""
    return {module: path or type(model).__name__ for path, module in model.named_modules()}


class ModuleScopes:
    """Follows the modules of `model`. `mark(path)` is entered around each of their forward passes."""

    def __init__(self, model: nn.Module, mark: Mark = nullcontext) -> None:
        self._paths = paths_of(model)
        self._mark = mark
        self._open: list[tuple[str, AbstractContextManager[Any]]] = []
        self._numbers: list[int] = []
        self._scopes: list[str] = []

    @contextmanager
    def followed(self) -> Iterator[None]:
        with ExitStack() as stack:
            for module, path in self._paths.items():
                # the pre-hook runs before all others, the hook after them: what they allocate belongs to the module
                enter = module.register_forward_pre_hook(partial(self._enter, path), prepend=True)
                leave = module.register_forward_hook(self._leave, always_call=True)
                stack.callback(enter.remove)
                stack.callback(leave.remove)
            yield

    def begin_step(self) -> None:
        self._numbers, self._scopes = [], []

    @property
    def current(self) -> str | None:
        return self._open[-1][0] if self._open else None

    def of_node(self, number: int) -> str | None:
        """Return the module in whose forward pass the node of this number was made, or the loss; None if unknown."""
        place = bisect_right(self._numbers, number) - 1
        if place < 0 or number > _LARGEST_NUMBER:
            return None
        return self._scopes[place]

    def of_current_node(self) -> str | None:
        node = torch._C._current_autograd_node()
        return None if node is None else self.of_node(node._sequence_nr())

    def _enter(self, path: str, *_: Any) -> None:
        scope = self._mark(path)
        scope.__enter__()
        self._open.append((path, scope))
        self._note()

    def _leave(self, *_: Any) -> None:
        scope = self._open.pop()[1]
        scope.__exit__(None, None, None)
        self._note()

    def _note(self) -> None:
        """Note the number of the next node, and its module. Within a backward pass, checkpointing makes nodes again."""
        if torch._C._current_graph_task_id() == -1:
            self._numbers.append(torch._C._autograd._get_sequence_nr())
            self._scopes.append(self.current or LOSS)


_LARGEST_NUMBER = 2**63
"""The number of nodes that accumulate gradients, the largest possible: they belong to a parameter, not a module."""


def gradients_of(model: nn.Module) -> list[tuple[str, Tensor]]:
    return [(path, p.grad) for path, p in _parameters(model) if p.grad is not None]


def state_of(model: nn.Module, tensors_of: Callable[[nn.Parameter], Iterable[Tensor]]) -> list[tuple[str, Tensor]]:
    """Return the optimizer's tensors, each once: parameters may share tables of 8-bit values."""
    return _each_once((path, tensor) for path, parameter in _parameters(model) for tensor in tensors_of(parameter))


def weights_of(model: nn.Module) -> list[tuple[str, Tensor]]:
    buffers = ((path, buffer) for module, path in paths_of(model).items() for buffer in module.buffers(recurse=False))
    return [*_parameters(model), *_each_once(buffers)]


def _parameters(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return _each_once((path, p) for module, path in paths_of(model).items() for p in module.parameters(recurse=False))


def _each_once(tensors: Iterable[tuple[str, T]]) -> list[tuple[str, T]]:
    first: dict[int, tuple[str, T]] = {}
    for path, tensor in tensors:
        first.setdefault(id(tensor), (path, tensor))
    return list(first.values())
