"""Counts what a recorded training holds: weights, gradients, states of optimizers, and alike tensors that pile up."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import memorymark_read as read

KEPT_A_STEP = 0.5
"""Tensors pile up where so many a step, or more, are added that are alike."""


def shares(torch: Any, device: str) -> dict[str, int]:
    """Return the bytes of weights, gradients and states on one kind of device; of a sharded tensor the local part."""
    weights = read.objects_of(torch.nn.Parameter)
    optimizers = read.objects_of(torch.optim.Optimizer)
    states = [state for each in optimizers for state in each.state.values() if isinstance(state, dict)]
    return {
        "weights_bytes": _bytes(torch, weights, device),
        "gradients_bytes": _bytes(torch, [each.grad for each in weights if each.is_leaf], device),
        "states_bytes": _bytes(torch, [each for state in states for each in state.values()], device),
    }


def _bytes(torch: Any, values: Iterable[Any], device: str) -> int:
    found: dict[int, int] = {}
    for each in values:
        tensor = getattr(each, "_local_tensor", each)
        if issubclass(type(tensor), torch.Tensor) and tensor.device.type == device:
            with suppress(RuntimeError, ValueError, NotImplementedError):  # it has no memory of its own
                storage = tensor.untyped_storage()
                found[storage.data_ptr()] = storage.nbytes()
    return sum(found.values())


def alike(torch: Any, device: str) -> dict[tuple[int, ...] | None, list[int]]:
    """Return how many plain tensors one kind of device has, their bytes, and how many hold the graph of their step.

    By shape, and under None of all shapes.
    """
    found: dict[tuple[int, ...] | None, list[int]] = {}
    for each in read.objects_of(torch.Tensor):
        if type(each) is torch.Tensor and each.layout is torch.strided and each.device.type == device:
            with suppress(RuntimeError):  # a view whose base was written since may not tell its graph
                size, has_graph = each.numel() * each.element_size(), each.grad_fn is not None
                for shape in (None, tuple(each.shape)):
                    counts = found.setdefault(shape, [0, 0, 0])
                    counts[:] = [counts[0] + 1, counts[1] + size, counts[2] + has_graph]
    return found


def piled_up(before: Any, now: Any, steps: int) -> dict[str, Any] | None:
    """Return what `steps` steps added the most bytes of, of one shape if they can be; None where nothing piled up."""
    least = max(1, KEPT_A_STEP * steps)
    added = {shape: [b - a for a, b in zip(before.get(shape, (0, 0, 0)), now[shape], strict=True)] for shape in now}
    rising = {shape: counts for shape, counts in added.items() if counts[0] >= least}
    if not rising:
        return None
    shape, (count, size, _) = max(rising.items(), key=lambda each: (each[0] is not None, each[1][1]))
    graphs = max(each[2] for each in rising.values())
    return {"shape": shape, "count": count, "bytes": size, "graphs": graphs if graphs >= least else 0}
