"""Knows at any moment of a training step to which module of the model it belongs. Needs torch.

Forward: hooks before and after each module. Backward: autograd numbers its nodes in the order in which the forward pass
makes them, and so the numbers at a module's beginning and end say which nodes are its own. Nothing is attached to a
tensor, and no tensor is kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..memory_breakdown import LOSS

Mark = Callable[[str], AbstractContextManager[Any]]


def paths_of(model: nn.Module) -> dict[nn.Module, str]:
    """Return the path of every module; the model itself goes by the name of its class."""
    return {module: path or type(model).__name__ for path, module in model.named_modules()}


class ModuleScopes:
    """Follows the modules of `model`. `mark(path)` is entered around each of their forward passes."""

    def __init__(self, model: nn.Module, mark: Mark = lambda path: nullcontext()) -> None:
        self._paths = paths_of(model)
        self._mark = mark
        self._open: list[tuple[str, AbstractContextManager[Any]]] = []
        self._numbers: list[int] = []
        self._scopes: list[str] = []

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Attach the hooks, and remove them in the end."""
        with ExitStack() as stack:
            for module, path in self._paths.items():
                # the pre-hook comes before others, the hook after them: what they allocate is the module's
                enter = module.register_forward_pre_hook(partial(self._enter, path), prepend=True)
                leave = module.register_forward_hook(self._leave, always_call=True)
                stack.callback(enter.remove)
                stack.callback(leave.remove)
            yield

    def begin_step(self) -> None:
        """Forget the nodes of the step before."""
        self._numbers, self._scopes = [], []

    @property
    def current(self) -> str | None:
        """The innermost module whose forward pass is running."""
        return self._open[-1][0] if self._open else None

    def of_node(self, number: int) -> str | None:
        """Return the module in whose forward pass the node of this number was made, or the loss; None if unknown."""
        place = bisect_right(self._numbers, number) - 1
        if place < 0 or number > _LARGEST_NUMBER:
            return None
        return self._scopes[place]

    def of_current_node(self) -> str | None:
        """Return the same of the node whose backward pass is running."""
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
        """Note the number of the next node, and whose it will be. Within a backward pass, nodes are made again."""
        if torch._C._current_graph_task_id() == -1:
            self._numbers.append(torch._C._autograd._get_sequence_nr())
            self._scopes.append(self.current or LOSS)


_LARGEST_NUMBER = 2**63
"""Nodes that accumulate gradients have the largest number there is: they belong to a parameter, not to a module."""


def gradients_of(model: nn.Module) -> list[tuple[str, Tensor]]:
    """Return every gradient with the module of its parameter."""
    return [(path, p.grad) for path, p in _parameters(model) if p.grad is not None]


def state_of(model: nn.Module, tensors_of: Callable[[nn.Parameter], Iterable[Tensor]]) -> list[tuple[str, Tensor]]:
    """Return every tensor that a parameter has from step to step, with the module of the parameter."""
    return [(path, tensor) for path, parameter in _parameters(model) for tensor in tensors_of(parameter)]


def weights_of(model: nn.Module) -> list[tuple[str, Tensor]]:
    """Return every parameter and buffer with its module, each once."""
    found: list[tuple[str, Tensor]] = [(path, parameter) for path, parameter in _parameters(model)]
    seen: set[int] = set()
    for module, path in paths_of(model).items():
        for buffer in module.buffers(recurse=False):
            if id(buffer) not in seen:
                seen.add(id(buffer))
                found.append((path, buffer))
    return found


def _parameters(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Return every parameter once, with the first module that has it."""
    found: list[tuple[str, nn.Parameter]] = []
    seen: set[int] = set()
    for module, path in paths_of(model).items():
        for parameter in module.parameters(recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                found.append((path, parameter))
    return found
