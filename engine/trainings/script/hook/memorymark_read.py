"""Reads figures of a watched training: the memory it holds, the card's counters, the size of a batch."""

from __future__ import annotations

import gc
import sys
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from math import prod
from typing import Any

_SOME_TENSORS, _SOME_SHAPES = 64, 8
_TEXT_MOST, _TEXT_END = 2_000, 1_500
IMAGE_DIMENSIONS, MOST_CHANNELS = 3, 4
"""The dimensions of a single image, outside a batch, and the most channels that it has."""


def is_traced(torch: Any) -> bool:
    """Whether a compiler or a tracer runs the modules: what they are given then is no batch of the training."""
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
        return True
    tracer = sys.modules.get("torch.fx._symbolic_trace")
    return bool(getattr(tracer, "_is_fx_tracing_flag", False))  # its getter logs a warning


def is_going_back(torch: Any) -> bool:
    """Whether this thread is within a backward pass: a checkpoint runs its modules again there, on a card's thread."""
    task: Any = getattr(torch._C, "_current_graph_task_id", None)
    return task is not None and task() != -1


def is_training(torch: Any, module: Any) -> bool:
    """Whether a module's forward pass trains; a module without storage only counts operations."""
    first = next(module.parameters(), None)
    return bool(module.training and torch.is_grad_enabled()) and (first is None or not first.is_meta)


def parameters_of(torch: Any, module: Any) -> int:
    """Return the number of a module's parameters; an uninitialized one has none yet."""
    return sum(t.numel() for t in module.parameters() if not torch.nn.parameter.is_lazy(t))


def held_bytes(torch: Any, optimizers: Any) -> dict[int, int]:
    """Return bytes by address that modules and `optimizers` hold; an averaged copy of the model is a module, too."""
    modules = objects_of(torch.nn.Module)
    own = [each for each in _optimizers(torch) if id(each) in optimizers]
    tensors = [t for each in modules for t in (*each._parameters.values(), *each._buffers.values()) if t is not None]
    tensors += [t for each in own for group in each.param_groups for t in group["params"]]
    tensors += [t.grad for t in tensors if t.is_leaf]
    tensors += _copies(torch, own, modules)
    tensors += [t for each in modules for value in vars(each).values() for t in _elements(value)]
    states = [state for each in own for state in each.state.values()]
    tensors += [t for state in states if hasattr(state, "values") for t in state.values()]
    return {address: size for address, size, _ in places(torch, tensors)}


def _copies(torch: Any, optimizers: Any, modules: Any) -> list[Any]:
    """Return tensors of lists and dicts with the shapes of the weights, also flat: an average, a copy, or moments."""
    parts = {id(part) for each in modules for part in each._modules.values()}
    own = [[t for group in each.param_groups for t in group["params"]] for each in optimizers]
    for root in (each for each in modules if id(each) not in parts):
        own += [list(root.parameters()), [*root.parameters(), *root.buffers()]]
    shapes = [_shapes(each) for each in own if not any(map(torch.nn.parameter.is_lazy, each))]
    totals = {sum(map(prod, each)) for each in shapes}
    flat = [t for _, _, t in places(torch, objects_of(torch.Tensor)) if t.ndim == 1 and t.numel() in totals - {0, 1}]
    lengths = {len(each) for each in shapes} - {0, 1}
    kinds = (list, dict, OrderedDict)
    found = [each for each in gc.get_objects() if type(each) in kinds and len(each) in lengths]
    values = [each if type(each) is list else list(each.values()) for each in found]
    tensors = [each for each in values if all(issubclass(type(t), torch.Tensor) for t in each)]
    made = [each for each in tensors if not any(map(torch.nn.parameter.is_lazy, each))]
    return [t for each in made if _shapes(each) in shapes for t in each] + flat


def _elements(value: Any) -> Any:
    """Return what an attribute of a module is or has: a tensor of a plain list or dict is no buffer."""
    return value.values() if type(value) is dict else value if type(value) in (list, tuple) else [value]


def _shapes(tensors: Any) -> list[tuple[int, ...]]:
    """Return the shapes in one order: a state has its buffers among its parameters."""
    return sorted(tuple(t.shape) for t in tensors)


def rows_drawn(torch: Any, iterator: Any) -> tuple[int | None, int | None]:
    """Return how many rows a loader's pass and its last batch have; None where unknown, as for an iterable data set."""
    batches = iterator._index_sampler
    if iterator._dataset_kind != 0:
        return None, None
    if type(batches) is not torch.utils.data.BatchSampler:
        return None, vars(iterator).get("_memorymark_sizes", {}).pop(iterator._num_yielded - 1, None)
    try:
        rows, size = len(batches.sampler), int(batches.batch_size)
    except (TypeError, NotImplementedError):
        return None, int(batches.batch_size)
    left = rows - (iterator._num_yielded - 1) * size
    return rows, min(size, left) if left > 0 else size


def shortened(text: str) -> str:
    """Return the beginning and the end of a long message: that of a rank's parent ends with the rank's own error."""
    is_short = len(text) <= _TEXT_MOST
    return text if is_short else f"{text[: _TEXT_MOST - _TEXT_END]} ... {text[-_TEXT_END:]}"


def card_facts(torch: Any, number: int) -> dict[str, Any]:
    card = torch.cuda.get_device_properties(number)
    return {
        "index": number,
        "name": card.name,
        "uuid": str(getattr(card, "uuid", "") or "") or None,
        "compute_capability": f"{card.major}.{card.minor}",
        "total_bytes": card.total_memory,
    }


def place_in_group(torch: Any) -> tuple[int, int] | None:
    """Return this process's rank and how many there are; None where it has not joined, or has left, a process group."""
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def idle_optimizers(torch: Any, made: set[int], stepped: Any) -> int:
    """Return how many optimizers exist without a step, but for one with the groups of another that steps, as SAM's."""
    existing = [each for each in _optimizers(torch) if id(each) in made]
    groups = {id(each.param_groups) for each in existing if id(each) in stepped}
    return sum(id(each) not in stepped and id(each.param_groups) not in groups for each in existing)


def _optimizers(torch: Any) -> list[Any]:
    """Return the existing optimizers. Another object may have the address of one that was freed."""
    return objects_of(torch.optim.Optimizer)


def objects_of(kind: Any) -> list[Any]:
    """Return the existing objects of a class. Compares `type(x)`: some objects fake `__class__`."""
    return [each for each in gc.get_objects() if issubclass(type(each), kind)]


def _on_cpu(torch: Any, tensors: Any) -> list[Any]:
    """Return the tensors in a CPU's memory; of a sharded tensor the local part. A sparse one has no storage."""
    found = [getattr(t, "_local_tensor", unwrapped(torch, t)) for t in tensors if issubclass(type(t), torch.Tensor)]
    return [t for t in found if t.device.type == "cpu" and t.layout is torch.strided and not t.is_nested]


def is_counted(tensor: Any) -> bool:
    """Whether torch's own allocator made a tensor's memory, and not numpy, a file, or another process."""
    storage = tensor.untyped_storage()
    return bool(storage.resizable() and not storage.is_shared())


def unwrapped(torch: Any, tensor: Any) -> Any:
    """Return the tensor that `torch.func` wraps: only the wrapped one has memory, and the rows of a whole batch."""
    wrapped = torch._C._functorch
    while wrapped.is_functorch_wrapped_tensor(tensor):
        tensor = wrapped.get_unwrapped(tensor)
    return tensor


def places(torch: Any, tensors: Any) -> list[tuple[int, int, Any]]:
    """Return address, bytes and tensor of each that has memory: an uninitialized or fake one has none."""
    found = []
    for each in _on_cpu(torch, tensors):
        with suppress(RuntimeError, ValueError):
            storage = each.untyped_storage()
            found.append((storage.data_ptr(), storage.nbytes(), each))
    return found


def _tensors(torch: Any, value: Any) -> Iterator[Any]:
    return (each for each in _leaves(torch, value) if issubclass(type(each), torch.Tensor))


def _leaves(torch: Any, value: Any) -> Iterator[Any]:
    """Yield what lies in the dicts, lists and tuples of a value, in their order; a list of texts is yielded whole."""
    waiting: list[Any] = [value]
    while waiting:
        each = waiting.pop(0)
        if issubclass(type(each), torch.Tensor) or _are_texts(each):
            yield each
        elif callable(getattr(type(each), "values", None)):
            waiting = [*each.values(), *waiting]
        elif isinstance(each, (list, tuple)):
            waiting = [*each, *waiting]
        else:
            yield each


def _are_texts(value: Any) -> bool:
    return type(value) in (list, tuple) and bool(value) and all(type(each) is str for each in value)


def _held_by(value: Any) -> dict[str, Any]:
    """Return what an object of the script's own holds, as a batch that is one; a module or function holds no batch."""
    names: Any = getattr(value, "__dict__", None) or getattr(value, "__dataclass_fields__", ())
    return {} if callable(value) else {name: getattr(value, name) for name in list(names)}


def some_tensors(torch: Any, value: Any) -> list[Any]:
    """Return the first tensors in what a module is given or gave: a value may hold thousands."""
    return list(islice(_tensors(torch, value), _SOME_TENSORS))


def given_tensors(torch: Any, value: Any) -> list[Any]:
    """Return the first tensors in what a module is given, or in a batch; without any, those that objects hold."""
    return some_tensors(torch, value) or some_tensors(torch, list(map(_held_by, _leaves(torch, value))))


def first_with_gradient(torch: Any, value: Any) -> Any:
    """Return the first output that requires grad, or None."""
    return next((each for each in _tensors(torch, value) if each.requires_grad), None)


def inputs_of(torch: Any, value: Any) -> tuple[list[int] | None, int | None, list[list[int]]]:
    """Return dimensions of the first tensor in `value`, elements of its first whole numbers, address and bytes of all.

    Of a table only the rows: its columns are no batch size. Of images in dicts their number and the largest's elements.
    """
    tensors = [unwrapped(torch, t) for t in given_tensors(torch, value)]
    first = next((t for t in tensors if t.ndim), None)
    is_table = first is not None and first.ndim == 2 and first.is_floating_point()
    shape = None if first is None else list(first.shape[: 1 if is_table else 2])
    if (described := _described_images(torch, value)) is not None:
        shape = [len(described), max(t.numel() for t in described)]
    if not tensors and (texts := next(filter(_are_texts, _leaves(torch, value)), None)):
        shape = [len(texts)]
    tokens = next((t.numel() for t in tensors if t.ndim > 1 and not t.is_floating_point()), None)
    held = [
        [address, min(t.numel() * t.element_size(), size), is_counted(t)] for address, size, t in places(torch, tensors)
    ]
    return shape, tokens, held


def shapes_of(torch: Any, value: Any) -> list[list[int]]:
    return [list(each.shape) for each in given_tensors(torch, value)[:_SOME_SHAPES]]


def _described_images(torch: Any, value: Any) -> list[Any] | None:
    """Return the image of each dict, where the first of what is given is a list of dicts with an image each.

    Of a collated list of dicts each tensor begins with the rows of the batch, and no number or text stands alone.
    """
    while type(value) in (list, tuple) and value and not (type(value) is list and isinstance(value[0], dict)):
        value = value[0]
    if type(value) is not list or not value or any(not isinstance(each, dict) for each in value):
        return None
    if not any(_is_one_row(torch, each) for each in value):
        return None
    images = [next((t for t in each.values() if torch.is_tensor(t) and t.ndim), None) for each in value]
    found = [t for t in images if t is not None and t.ndim == IMAGE_DIMENSIONS and len(t) <= MOST_CHANNELS]
    return found if len(found) == len(images) else None


def _is_one_row(torch: Any, described: Any) -> bool:
    tensors = [each for each in described.values() if torch.is_tensor(each)]
    has_alone = any(isinstance(each, (str, int, float)) for each in described.values())
    return has_alone or not all(t.ndim for t in tensors) or len({len(t) for t in tensors}) > 1
