"""Reads figures of a watched training: the memory it holds, the card's counters, the size of a batch."""

from __future__ import annotations

import gc
import weakref
from typing import Any

_SOME_TENSORS = 64
_TEXT_MOST, _TEXT_END = 2_000, 1_500


def card_memory(torch: Any) -> dict[str, Any]:
    """Return what the card's allocator counted since the process began, and the card's facts; empty without a card."""
    if not torch.cuda.is_initialized():
        return {}
    torch.cuda.synchronize()
    counts, (free_bytes, total_bytes) = torch.cuda.memory_stats(), torch.cuda.mem_get_info()
    card = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "name": card.name,
        "uuid": str(getattr(card, "uuid", "") or "") or None,
        "compute_capability": f"{card.major}.{card.minor}",
        "total_bytes": total_bytes,
        "free_bytes": free_bytes,
        "peak_allocated_bytes": counts.get("allocated_bytes.all.peak", 0),
        "peak_reserved_bytes": counts.get("reserved_bytes.all.peak", 0),
        "refused_allocations": counts.get("num_ooms", 0),
        "allocator_retries": counts.get("num_alloc_retries", 0),
    }


def held_bytes(torch: Any, optimizers: Any) -> dict[int, int]:
    """Return bytes by address that modules and `optimizers` hold; an averaged copy of the model is a module, too."""
    modules = [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]
    own = [each for each in _optimizers(torch) if id(each) in optimizers]
    tensors = [t for each in modules for t in (*each._parameters.values(), *each._buffers.values()) if t is not None]
    tensors += [t.grad for t in tensors if t.is_leaf]
    states = [state for each in own for state in each.state.values()]
    tensors += [t for state in states for t in state.values()]
    storages = [t.untyped_storage() for t in _on_cpu(torch, tensors)]
    return {storage.data_ptr(): storage.nbytes() for storage in storages}


def gradients(torch: Any) -> list[tuple[Any, int]]:
    """Return a weak reference to each gradient with its address: the profiler does not report that it is freed."""
    modules = [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]
    found = [t.grad for each in modules for t in each._parameters.values() if t is not None and t.is_leaf]
    return [(weakref.ref(t), t.untyped_storage().data_ptr()) for t in _on_cpu(torch, found)]


def rows_drawn(torch: Any, iterator: Any) -> tuple[int | None, int | None]:
    """Return how many rows one pass of a loader has, and how many the batch drawn last; None where that is not known.

    It is not known where the rows come one after the other, or the script's own sampler puts batches together.
    """
    batches = iterator._index_sampler
    if iterator._dataset_kind != 0 or type(batches) is not torch.utils.data.BatchSampler:
        return None, None
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


def place_in_group(torch: Any) -> tuple[int, int] | None:
    """Return this process's rank and how many there are; None where it has not joined, or has left, a process group."""
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def idle_optimizers(torch: Any, made: set[int], stepped: Any) -> int:
    """Return how many of the optimizers that were made, and still exist, have made no step."""
    return len(({id(each) for each in _optimizers(torch)} & made) - set(stepped))


def _optimizers(torch: Any) -> list[Any]:
    """Return the existing optimizers. Another object may have the address of one that was freed."""
    return [each for each in gc.get_objects() if issubclass(type(each), torch.optim.Optimizer)]


def _on_cpu(torch: Any, tensors: Any) -> list[Any]:
    """Return the tensors in a CPU's memory; of a sharded tensor the local part. A sparse one has no storage."""
    found = [getattr(t, "_local_tensor", t) for t in tensors if issubclass(type(t), torch.Tensor)]
    return [t for t in found if t.device.type == "cpu" and t.layout is torch.strided and not t.is_nested]


def allocator_events(profile: Any) -> list[list[int]]:
    """Return the CPU allocator's events as [time, address, bytes], with the watch's marks as [time, number]."""
    events, waiting = [], list(reversed(profile.profiler.kineto_results.experimental_event_tree()))
    while waiting:
        node = waiting.pop()
        waiting.extend(reversed(node.children))
        if node.tag.name == "Allocation":
            if node.extra_fields.device.type == "cpu":
                events.append([node.start_time_ns, node.extra_fields.ptr, node.extra_fields.alloc_size])
        elif node.name.startswith("memorymark."):
            events.append([node.start_time_ns, int(node.name.partition(".")[2])])
    return events


def first_with_gradient(torch: Any, value: Any) -> Any:
    """Return the first tensor in what a module gave that a backward pass goes through; None where there is none."""
    waiting: list[Any] = [value]
    while waiting:
        each = waiting.pop(0)
        if issubclass(type(each), torch.Tensor):
            if each.requires_grad:
                return each
        elif callable(getattr(each, "values", None)):
            waiting = [*each.values(), *waiting]
        elif isinstance(each, (list, tuple)):
            waiting = [*each, *waiting]
    return None


def inputs_of(torch: Any, value: Any) -> tuple[list[int] | None, int | None, list[list[int]]]:
    """Return dimensions of the first tensor in `value`, elements of its first whole numbers, address and bytes of all.

    At most two dimensions; only the rows of a table, because its columns cannot be a batch size.
    """
    waiting: list[Any] = [value]
    tensors: list[Any] = []
    while waiting and len(tensors) < _SOME_TENSORS:
        each = waiting.pop(0)
        if issubclass(type(each), torch.Tensor):
            tensors.append(each)
        elif callable(getattr(each, "values", None)):
            waiting = [*each.values(), *waiting]
        elif isinstance(each, (list, tuple)):
            waiting = [*each, *waiting]
    first = next((t for t in tensors if t.ndim), None)
    is_table = first is not None and first.ndim == 2 and first.is_floating_point()
    shape = None if first is None else list(first.shape[: 1 if is_table else 2])
    tokens = next((t.numel() for t in tensors if t.ndim > 1 and not t.is_floating_point()), None)
    held = [(t.untyped_storage(), t.numel() * t.element_size()) for t in _on_cpu(torch, tensors)]
    return shape, tokens, [[storage.data_ptr(), min(size, storage.nbytes())] for storage, size in held]
