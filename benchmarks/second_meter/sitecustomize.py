"""Measures what the training in this process holds at its peak, by a way of its own: nothing of the product is here.

Python imports this file where its folder is on PYTHONPATH. Without SECOND_METER in the environment it does nothing. It
makes random numbers the same in each start. Where `allocations.c` is preloaded, too, it counts from the first training
forward pass to the end of the wanted optimizer steps, or of the process, and writes the peak to a file named after the
process. Wanted losses, those that each backward pass begins at, are written to a file bit by bit.

Counted is what a device would hold: parameters, buffers, gradients, optimizer state and the inputs as they are when the
count begins, and each block of PyTorch's CPU allocator from then on until it is given back. A block made while a
DataLoader is asked for its next batch counts if that batch, or later inputs of the model, contain it.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import random
import time
from typing import Any

TO_THE_END = -1
"""The number of steps that stands for all of them."""
LATE = 8
"""An optimizer may step this many times less often than another before it counts as idle."""


class Meter:
    """Counts one process."""

    def __init__(self, torch: Any, settings: dict[str, Any]) -> None:
        self.torch, self.settings = torch, settings
        self.library = ctypes.CDLL(None)
        self.library.meter_peak.restype = ctypes.c_longlong
        self.library.meter_holds.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.library.meter_gives.argtypes = [ctypes.c_void_p]
        self.library.meter_beside.argtypes = [ctypes.c_longlong]
        self.depth, self.has_begun, self.went_back, self.is_over = 0, False, False, False
        self.made: set[int] = set()
        self.steps: dict[int, int] = {}
        self.began = 0.0
        self.beside: dict[str, dict[int, int]] = {}

    def arm(self) -> None:
        torch = self.torch
        atexit.register(self.end)
        from torch.optim import optimizer as optimizers
        from torch.utils.data import dataloader

        torch.optim.Optimizer.__init__ = self.before(torch.optim.Optimizer.__init__, self.make)
        torch.Tensor.backward = self.before(torch.Tensor.backward, self.go_back)
        optimizers.register_optimizer_step_post_hook(lambda optimizer, *_: self.step(id(optimizer)))
        call = torch.nn.Module.__call__

        def called(module: Any, *arguments: Any, **options: Any) -> Any:
            if torch.compiler.is_compiling():
                return call(module, *arguments, **options)
            self.depth += 1
            try:
                self.enter(module, [arguments, options])
                return call(module, *arguments, **options)
            finally:
                self.depth -= 1

        torch.nn.Module.__call__ = called
        draw = dataloader._BaseDataLoaderIter.__next__

        def drawn(iterator: Any) -> Any:
            self.library.meter_loads(1)
            self.depth += 1  # modules that the loading calls are transforms
            try:
                batch = draw(iterator)
            finally:
                self.depth -= 1
                self.library.meter_loads(0)
            self.give("batch", batch)
            return batch

        dataloader._BaseDataLoaderIter.__next__ = drawn

    @staticmethod
    def before(function: Any, note: Any) -> Any:
        def noted(this: Any, *arguments: Any, **options: Any) -> Any:
            note(this)
            return function(this, *arguments, **options)

        return noted

    def make(self, optimizer: Any) -> None:
        self.made.add(id(optimizer))
        self.steps.pop(0, None)

    def go_back(self, _: Any) -> None:
        self.went_back = not self.made

    def enter(self, module: Any, inputs: Any) -> None:
        if self.depth > 1 or not module.training or not self.torch.is_grad_enabled():
            return
        if self.went_back:  # a script without an optimizer changes its weights itself
            self.went_back = False
            self.step(0)
        self.begin()
        self.give("forward", inputs)

    def begin(self) -> None:
        if self.has_begun:
            return
        self.has_begun, self.began = True, time.monotonic()
        for tensor in self.held():
            storage = tensor.untyped_storage()
            self.library.meter_holds(storage.data_ptr(), storage.nbytes())
        self.library.meter_begins()

    def held(self) -> list[Any]:
        torch = self.torch
        objects = gc.get_objects()
        modules = [each for each in objects if issubclass(type(each), torch.nn.Module)]
        weights = [
            t for each in modules for t in (*each._parameters.values(), *each._buffers.values()) if t is not None
        ]
        states = [each.state for each in objects if issubclass(type(each), torch.optim.Optimizer)]
        more = [t for state in states for values in state.values() for t in values.values()]
        more += [t.grad for t in weights if t.is_leaf and t.grad is not None]
        found = [t for t in (*weights, *more) if isinstance(t, torch.Tensor)]
        return [t for t in found if t.device.type == "cpu" and t.layout is torch.strided]

    def give(self, what: str, value: Any) -> None:
        """Count inputs that are not followed as long as they are the newest of their kind."""
        found: dict[int, int] = {}
        for tensor in tensors_in(self.torch, value, set()):
            if tensor.device.type == "cpu" and tensor.layout is self.torch.strided:
                storage = tensor.untyped_storage()
                if not self.library.meter_gives(storage.data_ptr()):
                    found[storage.data_ptr()] = min(tensor.numel() * tensor.element_size(), storage.nbytes())
        self.beside[what] = found
        if self.has_begun:
            together = {at: size for each in self.beside.values() for at, size in each.items()}
            self.library.meter_beside(sum(together.values()))

    def step(self, optimizer: int) -> None:
        if not self.has_begun:
            self.begin()
            return
        self.steps[optimizer] = self.steps.get(optimizer, 0) + 1
        is_late = time.monotonic() - self.began > self.settings["seconds"]
        wanted = self.settings["least_steps"] if is_late else self.settings["steps"]
        if wanted != TO_THE_END and self.has_made(wanted):
            self.write()

    def has_made(self, wanted: int) -> bool:
        """Tell whether each optimizer stepped so often, idle ones left out."""
        if not self.steps:
            return False
        fewest, most = min(self.steps.values()), max(self.steps.values())
        return fewest >= wanted and (len(self.steps) >= len(self.made) or most >= LATE * wanted)

    def end(self) -> None:
        """Write the peak of a process that ends before the wanted steps, or of which all were wanted."""
        if self.settings["steps"] == TO_THE_END or self.has_made(self.settings["least_steps"]):
            self.write()

    def write(self) -> None:
        """Write the peak, once."""
        if self.is_over or not self.has_begun:
            return
        self.library.meter_ends()
        self.is_over = True
        path = os.path.join(self.settings["folder"], f"{os.getpid()}.json")
        with open(path + ".partial", "w") as file:
            found = {"peak_bytes": self.library.meter_peak(), "steps": min(self.steps.values(), default=0)}
            json.dump(found | {"world": int(os.environ.get("WORLD_SIZE", "1"))}, file)
        os.replace(path + ".partial", path)


def tensors_in(torch: Any, value: Any, seen: set[int]) -> list[Any]:
    """Return the tensors in a batch, also those that are attributes, as of a graph."""
    if id(value) in seen or len(seen) > 10_000:
        return []
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, (list, tuple)):
        parts = list(value)
    else:
        parts = list(getattr(value, "__dict__", {}).values())
    return [tensor for part in parts for tensor in tensors_in(torch, part, seen)]


def begin() -> None:
    import torch

    settings = json.loads(os.environ["SECOND_METER"])
    random.seed(0)
    torch.manual_seed(0)
    try:
        import numpy
    except ImportError:
        pass
    else:
        numpy.random.seed(0)
    if settings.get("loaders"):
        sets_loaders(torch, settings["loaders"])
    if settings.get("losses"):
        notes_losses(torch, settings["losses"])
    if settings.get("steps"):
        Meter(torch, settings).arm()


def notes_losses(torch: Any, folder: str) -> None:
    """Write each number that a backward pass begins at into a file of this process, before the pass."""
    back = torch.Tensor.backward

    def noted(loss: Any, *arguments: Any, **options: Any) -> Any:
        if loss.numel() == 1:
            with open(os.path.join(folder, f"{os.getpid()}.losses"), "a") as file:
                file.write(f"{loss.detach().item().hex()}\n")
        return back(loss, *arguments, **options)

    torch.Tensor.backward = noted


def sets_loaders(torch: Any, size: int) -> None:
    """Give each DataLoader with a batch size this one, for a script that has it in its own text."""
    make = torch.utils.data.DataLoader.__init__

    def made(loader: Any, dataset: Any, batch_size: Any = 1, *others: Any, **options: Any) -> None:
        is_own = batch_size is None or options.get("batch_sampler") is not None
        make(loader, dataset, batch_size if is_own else size, *others, **options)

    torch.utils.data.DataLoader.__init__ = made


if os.environ.get("SECOND_METER"):
    begin()
