"""Tells what of a CPU's memory is the training's: torch counts every block, and the data set's are left out.

A tensor from before is the data set's if it is only read, and no module, optimizer or earlier pass may have made it.
"""

from __future__ import annotations

import ctypes
import gc
import weakref
from contextlib import suppress
from functools import partial
from typing import Any

import memorymark_read as read

COUNTS = "FLAGS_caffe2_report_cpu_memory_usage"
MARK = "memorymark."
CONTAINERS = (dict, list, tuple, set)
MOST_LOOKED_AT = 1_000_000


class Tensors:
    """The tensors alive at one moment, with how often each has been written so far."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.noted = {
            id(each): (weakref.ref(each), _times_written(each))
            for _, size, each in read.places(torch, read.objects_of(torch.Tensor))
            if size
        }

    def has(self, tensor: Any) -> bool:
        return id(tensor) in self.noted and self.noted[id(tensor)][0]() is tensor

    def addresses(self) -> set[int]:
        return {address for address, _, _ in read.places(self.torch, self.existing())}

    def existing(self) -> list[Any]:
        return [each for reference, _ in self.noted.values() if (each := reference()) is not None]

    def written(self) -> list[Any]:
        """Return the tensors that were written since."""
        return [each for each in self.existing() if _times_written(each) != self.noted[id(each)][1]]


class Held:
    """What is there when the watch begins: `data` by address, which does not count, and what torch does not count.

    That is `uncounted`: memory of numpy, of a file or of several processes. Nothing was seen to hold `only_read_bytes`.
    """

    def __init__(self, torch: Any, optimizers: Any, at_arming: Any, at_first_pass: Any) -> None:
        self.torch, now = torch, Tensors(torch)
        self.before = at_first_pass or now
        self.made_early = at_arming.addresses()
        places = read.places(torch, now.existing())
        own = read.held_bytes(torch, optimizers)
        early = {address for address, _, each in places if self.before.has(each)}
        late = {address for address, *_ in places} - early
        counts = own.keys() | (late and late - data_addresses(torch))
        counted = {address for address, _, each in places if self.is_counted(address, each)}
        self.data = {address: size for address, size, _ in places if address in counted - counts}
        self.uncounted = {address: size for address, size in own.items() if address not in counted}
        self.only_read_bytes = 0

    def is_counted(self, address: int, tensor: Any) -> bool:
        return read.is_counted(tensor) and address not in self.made_early

    def end(self) -> None:
        of_data_sets = data_addresses(self.torch)
        for address, size, each in read.places(self.torch, self.before.written()):
            if address not in of_data_sets:
                self.data.pop(address, None)
                self.uncounted |= {} if self.is_counted(address, each) else {address: size}
        existing = Tensors(self.torch).addresses() if self.uncounted else ()
        self.uncounted = {address: size for address, size in self.uncounted.items() if address in existing}
        only_read = self.before.addresses() - of_data_sets  # a first batch is gone by now
        self.only_read_bytes = sum(size for address, size in self.data.items() if address in only_read)


class CpuMemory:
    """The blocks that torch's CPU allocator gives out, counted in every thread, with the events of the one that trains.

    By itself torch counts those of the thread that is profiled, and reports no end of a block from before.
    """

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.profile: Any = None
        self.held: Any = None
        self.at_first_pass: Any = None
        self.events: list[tuple[int, ...]] = []
        self.at_arming = Tensors(torch)
        self.can_count = self._count(True)

    def _count(self, is_wanted: bool) -> bool:
        with suppress(OSError, ValueError):
            ctypes.c_bool.in_dll(ctypes.CDLL(self.torch._C.__file__), COUNTS).value = is_wanted
            return True
        return False

    def first_pass(self) -> None:
        """Note what is there before a module first runs without training: what comes then is no data set."""
        self.at_first_pass = self.at_first_pass or Tensors(self.torch)

    def begin(self, optimizers: Any) -> None:
        if self.can_count:
            self.held = Held(self.torch, optimizers, self.at_arming, self.at_first_pass)
            self.profile = _profile_of_memory(self.torch)

    def mark(self, number: int) -> None:
        if self.profile is not None:
            with self.torch.autograd.profiler.record_function(f"{MARK}{number}"):
                pass

    def forget(self) -> Any:
        profile, self.profile = self.profile, None
        if profile is not None:
            profile.__exit__(None, None, None)
        return profile

    def end(self) -> None:
        if (profile := self.forget()) is not None:
            self.events = _events(profile)
            self.held.end()
        self._count(False)

    def noted(self) -> dict[str, Any]:
        if self.held is None:
            return {"events": []}
        figures = {"only_read_bytes": self.held.only_read_bytes, "uncounted_bytes": sum(self.held.uncounted.values())}
        return {"events": self.events, "data": list(self.held.data.items())} | figures


def _profile_of_memory(torch: Any) -> Any:
    """Begin a profile of allocations and marks: without the operations it takes a third of the time and memory."""
    profiler, kinds = torch.autograd.profiler, [torch.profiler.ProfilerActivity.CPU]
    enable = profiler._enable_profiler
    profiler._enable_profiler = partial(enable, scopes={torch._C._profiler.RecordScope.USER_SCOPE})
    try:
        return torch.profiler.profile(activities=kinds, profile_memory=True).__enter__()
    finally:
        profiler._enable_profiler = enable


def _events(profile: Any) -> list[tuple[int, ...]]:
    """Return the allocator's events as (time, address, bytes, all it has given out), and marks as (time, number).

    Python's garbage collector does not look through tuples of numbers: a training's collections take as long as ever.
    """
    events: list[tuple[int, ...]] = []
    waiting = list(reversed(profile.profiler.kineto_results.experimental_event_tree()))
    while waiting:
        node = waiting.pop()
        waiting.extend(reversed(node.children))
        if node.tag.name == "Allocation":
            if node.extra_fields.device.type == "cpu":
                block = node.extra_fields
                events.append((node.start_time_ns, block.ptr, block.alloc_size, block.total_allocated))
        elif node.name.startswith(MARK):
            events.append((node.start_time_ns, int(node.name.partition(".")[2])))
    return events


def _times_written(tensor: Any) -> int | None:
    """Return how often a tensor, or a view of it, was written in place; None where torch does not count that."""
    return None if tensor.is_inference() else tensor._version


def data_addresses(torch: Any) -> set[int]:
    loaders = torch.utils.data.dataloader
    kinds = (torch.utils.data.Dataset, loaders.DataLoader, loaders._BaseDataLoaderIter)
    owners = read.objects_of(kinds)
    sets = [each.dataset for each in owners if issubclass(type(each), loaders.DataLoader)]
    waiting = [*sets, *(part for each in (*owners, *sets) for part in gc.get_referents(each))]
    tensors: list[Any] = []
    looked_at: set[int] = set()
    while waiting and len(looked_at) < MOST_LOOKED_AT:
        each = waiting.pop()
        if issubclass(type(each), torch.Tensor):
            tensors.append(each)
        elif isinstance(each, CONTAINERS) and id(each) not in looked_at:
            looked_at.add(id(each))
            waiting += each.values() if isinstance(each, dict) else each
    return {address for address, _, _ in read.places(torch, tensors)}
