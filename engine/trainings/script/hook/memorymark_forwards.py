"""Follows the forward passes of the outermost modules: which modules train, their inputs, and failed passes."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from functools import partial
from typing import Any

import memorymark_read as read
from memorymark_compiled import see_compiled
from memorymark_optimizers import BY_HAND
from memorymark_patches import wrap


class Forwards:
    """The forward passes so far. `trained` are those in training mode with gradients, `evaluated` the others since."""

    def __init__(self, watched: Any) -> None:
        self.watched = watched
        self.depth = self.trained = self.evaluated = 0
        self.thread: int | None = None  # the one that trains
        self.went_back = False
        self.given: dict[int, Any] = {}  # the first tensor of each pass since the last step
        self.frozen: Any = weakref.WeakKeyDictionary()  # of modules in evaluation mode the first steps that ran them
        self.parameters: Any = weakref.WeakKeyDictionary()  # of each outermost module how many: counting takes a while
        self.hooks: list[Any] = []  # those that every module of the process calls
        self.raised: Any = None  # counts the failures

    def follow(self) -> None:
        modules = self.watched.torch.nn.modules.module
        self.hooks = [
            modules.register_module_forward_pre_hook(lambda module, _: self.begin(module)),
            modules.register_module_forward_hook(self.end, with_kwargs=True, always_call=True),
        ]
        see_compiled(self.watched.torch, self.run)

    def follow_outermost_alone(self) -> None:
        """Time the training without hooks on each module in it: many small ones would seem slower than they are.

        Nothing is set on a module, which may be copied. A compiled one keeps the hooks out by itself.
        """
        counters: Any = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
        if self.depth or self.watched.epoch or (counters and counters["frames"]["total"]):
            return
        kind: Any = self.watched.torch.nn.Module
        call = kind._call_impl

        def called(module: Any, *arguments: Any, **options: Any) -> Any:
            if self.depth:
                return call(module, *arguments, **options)
            return self.run(partial(call, module), module, arguments, options)

        kind._call_impl = called
        for hook in self.hooks:
            hook.remove()

    def run(self, call: Any, module: Any, arguments: Any, options: Any) -> Any:
        """Run a forward pass that no hooks see."""
        found: tuple[Any, ...] = ()
        began = time.monotonic()
        self.begin(module)
        self.watched.steps.own_seconds += time.monotonic() - began
        try:
            found = (call(*arguments, **options),)
        finally:
            ended = time.monotonic()
            self.end(module, arguments, options, *found)
            self.watched.steps.own_seconds += time.monotonic() - ended
        return found[0]

    def is_unseen(self) -> bool:
        """Whether a running module is not to be seen: a transform of a loader, or compiled and seen from outside."""
        if read.is_traced(self.watched.torch):  # asked first: a tracer goes no further, and knows no threads
            return True
        return threading.get_ident() in self.watched.loaders.drawing

    def begin(self, module: Any) -> None:
        if self.is_unseen():
            return
        self.depth += 1
        if self.depth > 1:
            return
        if read.is_training(self.watched.torch, module):
            self._begin_training(module)
        else:
            self._begin_evaluation(module)

    def _begin_training(self, module: Any) -> None:
        watched = self.watched
        if self.went_back:
            self.went_back = False
            watched.steps.count(BY_HAND)
        self.thread = self.thread if read.is_going_back(watched.torch) else threading.get_ident()
        watched.trains_on(next((t.device for t in module.parameters()), None))
        watched.cards.meet(module)
        watched.cards.begin_step()
        if watched.epoch is not None:
            watched.epoch.trains()
        self.trained += 1
        watched.seen.count("forwards")
        watched.phase("forward")

    def _begin_evaluation(self, module: Any) -> None:
        watched = self.watched
        watched.seen.count("evaluations")
        if watched.is_waiting:
            watched.cpu.first_pass()
        if self.trained and not watched.is_timing:  # as a reward model: a part of the training
            self.frozen.setdefault(module, set()).add(watched.steps.least())
        is_evaluation = not module.training and (module in self.parameters or len(self.frozen.get(module, ())) < 2)
        if watched.is_timing and is_evaluation and watched.marks[-1][1] != "evaluated":
            watched.mark("evaluated")  # the step that ends next took longer for it
        if watched.epoch is not None and watched.epoch.has_not_trained():
            self.evaluated += 1
            watched.epoch.latest.has_evaluated |= module in self.parameters
            watched.phase("evaluation")

    def end(self, module: Any, arguments: Any, options: Any, *found: Any) -> None:
        """Note the end of a forward pass; after one that failed torch leaves the options out, and nothing was found."""
        if self.is_unseen():
            return
        torch = self.watched.torch
        self.depth -= 1
        if self.depth:
            return
        if not found and not read.is_going_back(torch):  # a checkpoint ends its modules so
            self.raised.failed()
        if not found or not read.is_training(torch, module):
            return
        if module not in self.parameters:
            self.parameters[module] = read.parameters_of(torch, module)
        inputs = *read.inputs_of(torch, [arguments, options]), self.is_given_again(arguments, options)
        self.watched.mark("forward", self.parameters[module], *inputs, read.shapes_of(torch, [arguments, options]))
        self.watched.phase("backward")
        if not self.watched.steps.optimizers and (result := read.first_with_gradient(torch, found[0])) is not None:
            result.register_hook(self.note_backward)

    def is_given_again(self, *given: Any) -> bool:
        """Whether the step's modules were given the first tensor before, as in each call of a closure; note it."""
        first = next(iter(read.given_tensors(self.watched.torch, given)), None)
        if first is None:
            return False
        known, self.given[id(first)] = self.given.get(id(first)), weakref.ref(first)
        return known is not None and known() is first

    def note_backward(self, _: Any) -> None:
        """Note a backward pass of a script that has made no optimizer: its step ends where the next forward begins."""
        self.went_back = not self.watched.steps.optimizers


class Raised:
    """Counts the failures given to Python code of a training, as one of memory that it catches.

    A card's allocator also counts those that torch catches, as where cuDNN asks for less then: they change no training.
    `count` is None where this torch has no class for an out-of-memory error.
    """

    def __init__(self, torch: Any, go_back: Any = lambda: None) -> None:
        kind = getattr(torch, "OutOfMemoryError", None) or getattr(torch.cuda, "OutOfMemoryError", None)
        self.count: Any = None if kind is None else 0
        if kind is None:
            return
        scripted = torch._C.ScriptFunction  # an out-of-memory in a scripted function is a plain RuntimeError
        wrap(kind, "__init__", self.made)
        wrap(torch.autograd, "backward", partial(self.called, go_back))
        wrap(scripted, "__call__", partial(self.called, lambda: None))

    def made(self, make: Any, error: Any, *details: Any, **options: Any) -> None:
        """Count an error that was made, also in C++, where Python code catches it."""
        self.failed()
        make(error, *details, **options)

    def called(self, begin: Any, function: Any, *arguments: Any, **options: Any) -> Any:
        begin()
        try:
            return function(*arguments, **options)
        except RuntimeError:
            self.failed()
            raise

    def failed(self) -> None:
        if self.count is not None:
            self.count += 1
