"""Records what a training does, in the user's own process. `sitecustomize.py` starts it once torch has been imported.

It records each optimizer step, forward pass and batch, reads the memory they took, and ends the process after the steps
that it was to watch. It draws no random number and changes no tensor: the losses of those steps are those of a run
without it. The record goes into one JSON file per process, in a folder of MemoryMark's; nothing is sent anywhere.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
import weakref
from functools import partial
from importlib import import_module
from typing import Any

import memorymark_read as read
import memorymark_seen
from memorymark_compiled import see_compiled
from memorymark_held import CpuMemory
from memorymark_loaders import Passes, number_rows
from memorymark_optimizers import Stepped
from memorymark_peaks import Peaks
from memorymark_processes import last_step, see_failed_ranks, steps_to_read
from memorymark_raised import Raised
from memorymark_seat import begin_timing, computing_fraction, goes_on
from memorymark_turns import Given, Turns
from memorymark_unseen import Unseen

BY_HAND = 0
"""Stands for the optimizer in the marks of a script that has none, and changes its weights itself."""
watched: Any = None
"""The watch over this process; None where there is none."""


def begin(settings: Any) -> Any:
    """Make the watch over this process. It has to be armed when torch has been imported."""
    global watched
    watched = Watch(settings)
    return watched


class Watch:
    """The record of one process: marks in their order, and on a CPU the allocator's events between them."""

    def __init__(self, settings: Any) -> None:
        self.settings, self.depth, self.is_ended = settings, 0, False
        self.torch: Any = None
        self.thread: int | None = None  # the one that trains
        self.device: Any = None
        self.memory: Any = None
        self.cpu: Any = None  # its memory
        self.first_timed, self.timed_from, self.computed_from, self.thread_from = 0, 0.0, 0.0, 0.0
        self.marks: list[Any] = []
        self.steps: dict[int, int] = {}
        self.optimizers: set[int] = set()
        self.stepped, self.passes, self.peaks = Stepped(), Passes(self), Peaks()
        self.given, self.turns, self.unseen = Given(), Turns(), Unseen()
        self.went_back = False
        self.raised: Any = None
        self.loader_kinds: list[Any] = []
        self.loader_changes: list[Any] = []
        self.loading: list[int] = []  # the threads that draw a batch
        self.frozen: Any = weakref.WeakKeyDictionary()  # of modules in evaluation mode the first steps that ran them
        self.epoch: Any = None
        self.faster: Any = None
        self.seen = memorymark_seen.Seen(settings.get("folder"))
        self.forwards = self.evaluations = 0
        self.group: Any = None
        self.hooks: list[Any] = []  # those that every module of the process calls
        self.cards: set[int] = set()  # those that its outermost modules compute on
        self.roots: Any = weakref.WeakSet()
        self.parameters: Any = weakref.WeakKeyDictionary()  # of each outermost module how many: counting takes a while
        self.draws = 0
        self.consumed: dict[int, int] = {}  # by optimizer: forward passes and batches until its last step
        self.loader = (0, 0)  # the most workers of a loader that fed the training, and the batches they make ahead

    def arm(self, torch: Any) -> None:
        optim, loaders = import_module("torch.optim.optimizer"), import_module("torch.utils.data.dataloader")
        modules, self.torch = torch.nn.modules.module, torch
        self.mark("armed", torch.__version__, sys.argv)
        self.seen.once("imported")
        self.cpu = CpuMemory(torch)
        self.raised = Raised(torch, lambda: self.mark("backward"))
        folder = self.settings["folder"]
        if len(folder) < 80:  # a socket's path has at most 104 bytes; killed workers do not remove theirs
            import_module("multiprocessing.process").current_process()._config.setdefault("tempdir", folder)
        if self.settings.get("faster"):
            self.faster = import_module("memorymark_faster").Faster(self, torch)
        draw, make_optimizer = loaders._BaseDataLoaderIter.__next__, optim.Optimizer.__init__
        number_rows(torch, loaders._BaseDataLoaderIter)

        def made_optimizer(optimizer: Any, *others: Any, **options: Any) -> None:
            is_first = not self.optimizers
            self.optimizers.add(id(optimizer))
            self.steps.pop(BY_HAND, None)  # steps of a network that was trained before this optimizer was made
            self.seen.count("optimizers")
            make_optimizer(optimizer, *others, **options)
            self.stepped.made(optimizer)
            if is_first and not self.steps and self.memory is None:  # before the first optimizer nothing was trained
                self.forget_start()

        def drawn(iterator: Any) -> Any:
            if self.thread not in (None, threading.get_ident()):  # the training does not wait for this thread
                return draw(iterator)
            self.mark("loading")
            self.loading.append(threading.get_ident())  # a transform may be a module: what it is given is no batch
            try:
                batch = (self.epoch or self.passes).draw(iterator, draw)
                self.passes.goes_on()
            except StopIteration:
                self.passes.ended(iterator)
                raise
            finally:
                self.loading.remove(threading.get_ident())  # once: a data set may draw from another loader
                self.mark("loaded")
            inputs = read.inputs_of(torch, batch)
            rows, shapes = read.rows_drawn(torch, self.passes.newest_of(iterator)), read.shapes_of(torch, batch)
            self.unseen.drawn(iterator, is_training=torch.is_grad_enabled())
            self.mark("batch", torch.is_grad_enabled(), *inputs, *rows, shapes)
            if torch.is_grad_enabled():
                self.draws += 1
                workers = iterator._num_workers
                self.loader = max(self.loader, (workers, workers * (getattr(iterator, "_prefetch_factor", 0) or 0)))
            self.seen.count("batches")
            self.seen.put("batch_size", (inputs[0] or [0])[0])
            return batch

        if self.settings.get("whole_run"):
            self.epoch = import_module("memorymark_epoch").Epoch(self, torch, loaders._BaseDataLoaderIter)
        optim.Optimizer.__init__, loaders._BaseDataLoaderIter.__next__ = made_optimizer, drawn
        optim.register_optimizer_step_pre_hook(lambda *_: self.phase("optimizer_step"))
        optim.register_optimizer_step_post_hook(lambda optimizer, *_: self.after_step(self.stepped.number(optimizer)))
        self.hooks = [
            modules.register_module_forward_pre_hook(lambda module, _: self.before_forward(module)),
            modules.register_module_forward_hook(self.after_forward, with_kwargs=True, always_call=True),
        ]
        see_compiled(torch, self.run)
        if (self.settings["limit_bytes"] or self.settings.get("emulated")) and torch.version.cuda:
            torch.cuda._lazy_call(self.limit_memory)  # when the script opens the card, not before
        report = sys.excepthook

        def failed(kind: Any, exc: Any, trace: Any) -> None:
            self.fail(exc)
            report(kind, exc, trace)

        sys.excepthook = failed
        atexit.register(self.end, "exit")
        see_failed_ranks(self, import_module("multiprocessing.process").BaseProcess)

    def see_loaders(self, kind: Any) -> None:
        """Change a class of loaders as the others: one of a library may be made without torch's own `__init__`."""
        self.loader_kinds.append(kind)
        for change in self.loader_changes:
            change(self, kind)

    def change_loaders(self, change: Any) -> None:
        """Call `change` with the watch and each class of loaders, also those that are imported later."""
        self.loader_changes.append(change)
        for kind in (self.torch.utils.data.DataLoader, *self.loader_kinds):
            change(self, kind)

    def fail(self, error: Any) -> None:
        is_cut = self.epoch is not None and self.epoch.is_ended_by_cut(type(error), str(error))
        self.end("cut" if is_cut else "error", type(error).__name__, str(error))

    def place(self) -> tuple[int, int]:
        """Return the rank of this process and how many there are; of a group also when it has been left."""
        self.group = self.group or read.place_in_group(self.torch)
        return self.group or (int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))

    def is_alone(self) -> bool:
        """Whether no other process waits for this one: it is in no group, or stands in for a group's rank."""
        return bool(self.settings.get("emulated")) or self.place()[1] == 1

    def limit_memory(self, device: Any = None) -> None:
        number = self.torch.cuda.current_device() if device is None else device
        total_bytes = self.torch.cuda.get_device_properties(number).total_memory
        emulated = self.settings.get("emulated") or {}
        free_bytes = (self.settings["limit_bytes"] or total_bytes) - emulated.get("communication_bytes", 0)
        self.torch.cuda.set_per_process_memory_fraction(max(min(free_bytes / total_bytes, 1.0), 0.0), number)

    def mark(self, name: Any, *details: Any) -> None:
        self.marks.append([time.monotonic(), name, *details])
        if self.cpu is not None:
            self.cpu.mark(len(self.marks) - 1)

    def phase(self, name: Any) -> None:
        is_read = self.memory is None and self.device is not None and self.device.type == "cuda"
        self.mark("phase", name, *self.allocated() if is_read else (None, None))

    def allocated(self) -> tuple[int, int]:
        """Return the most bytes that the training's card held so far, and those that it holds now."""
        return self.torch.cuda.max_memory_allocated(self.device), self.torch.cuda.memory_allocated(self.device)

    def has_begun(self) -> bool:
        """Whether what runs now may be the training: a module runs before, too, in a constructor or a summary of it."""
        return bool(self.optimizers or self.went_back or self.steps)

    def is_unseen(self) -> bool:
        """Whether a running module is not to be seen: it is within a loader, or compiled and seen from outside."""
        return read.is_traced(self.torch) or threading.get_ident() in self.loading  # a tracer goes no further

    def before_forward(self, module: Any) -> None:
        if self.is_unseen():
            return
        self.depth += 1
        if self.depth > 1:
            return
        if read.is_training(self.torch, module):
            if self.went_back:
                self.went_back = False
                self.after_step(BY_HAND)
            self.thread = self.thread if read.is_going_back(self.torch) else threading.get_ident()
            self.start(next((t.device for t in module.parameters()), None))
            self.meet(module)
            self.peaks.begin_step(self.torch, self.cards)
            if self.epoch is not None:
                self.epoch.trains()
            self.forwards += 1
            self.seen.count("forwards")
            self.phase("forward")
            return
        self.seen.count("evaluations")
        if self.device is None:
            self.cpu.first_pass()
        if self.memory is None and self.forwards:  # as a reward model: a part of the training
            self.frozen.setdefault(module, set()).add(self.least_steps())
        is_evaluation = not module.training and (module in self.parameters or len(self.frozen.get(module, ())) < 2)
        if self.memory is not None and is_evaluation and self.marks[-1][1] != "evaluated":
            self.mark("evaluated")  # the step that ends next took longer for it
        if self.epoch is not None and self.epoch.has_not_trained():
            self.evaluations += 1
            self.epoch.latest.has_evaluated |= module in self.parameters
            self.phase("evaluation")

    def after_forward(self, module: Any, arguments: Any, options: Any, *found: Any) -> None:
        """Note the end of a forward pass; after one that failed torch leaves the options out, and nothing was found."""
        if not self.is_unseen():
            self.depth -= 1
            if self.depth == 0 and not found and not read.is_going_back(self.torch):  # a checkpoint ends its modules so
                self.raised.failed()
            if self.depth == 0 and found and read.is_training(self.torch, module):
                inputs = read.inputs_of(self.torch, [arguments, options])
                if module not in self.parameters:
                    self.parameters[module] = read.parameters_of(self.torch, module)
                inputs = *inputs, self.given.again(self.torch, arguments, options)
                shapes = read.shapes_of(self.torch, [arguments, options])
                self.mark("forward", self.parameters[module], *inputs, shapes)
                self.phase("backward")
                if not self.optimizers and (result := read.first_with_gradient(self.torch, found[0])) is not None:
                    result.register_hook(self.note_backward)

    def note_backward(self, _: Any) -> None:
        """Note a backward pass of a script that has made no optimizer: its step ends where the next forward begins."""
        self.went_back = not self.optimizers

    def forget_start(self) -> None:
        """Watch from the next forward pass on: the one before was of a constructor or a summary of the model."""
        self.cpu.forget()
        self.device = None
        self.mark("begun")

    def start(self, device: Any) -> None:
        is_moved = self.device is not None and device is not None and self.device.type == "cpu" != device.type
        if is_moved and not self.steps and self.memory is None:
            self.forget_start()
        if self.device is None and device is not None:
            self.device = device
            _ = self.cpu.begin(self.optimizers) if device.type == "cpu" else self.cpu.end()

    def meet(self, module: Any) -> None:
        """Limit the cards of a module that was not seen before: a script may leave another card the current one."""
        if self.device is None or self.device.type != "cuda" or module in self.roots:
            return  # a module that ran on the CPU first is met once it has been moved
        if cards := read.cards_of(module):
            self.roots.add(module)
        is_limited = self.settings["limit_bytes"] or self.settings.get("emulated")
        for number in cards - self.cards:
            self.cards.add(number)
            if is_limited and self.torch.version.cuda:
                self.limit_memory(number)

    def watch_outermost_alone(self) -> None:
        """Time the training without hooks on each module in it: many small ones would seem slower than they are.

        Nothing is set on a module, which may be copied. A compiled one keeps the hooks out by itself.
        """
        counters: Any = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
        if self.depth or self.epoch or (counters and counters["frames"]["total"]):
            return
        kind: Any = self.torch.nn.Module
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
        self.before_forward(module)
        try:
            found = (call(*arguments, **options),)
        finally:
            self.after_forward(module, arguments, options, *found)
        return found[0]

    def after_step(self, optimizer: Any) -> None:
        consumed = self.forwards + self.draws
        if "deepspeed" in sys.modules and consumed and self.consumed.get(optimizer) == consumed:
            return  # a part of the same step: DeepSpeed makes one for each group of parameters
        self.consumed[optimizer] = consumed
        self.seen.count("steps")
        self.seen.now("stepped")
        self.place()
        if self.device is None:  # no forward pass was seen: the steps after this one are watched
            self.start(self.torch.device("cuda" if self.torch.cuda.is_initialized() else "cpu"))
            return
        if self.memory is not None and self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)
        self.steps[optimizer] = self.steps.get(optimizer, 0) + 1
        own = self.peaks.end_step(self.torch, self.cards, optimizer) if self.cards and self.memory is None else ()
        self.mark("step", optimizer, *own)
        self.given = Given()
        self.passes.stepped()
        if self.turns.step(self.thread if self.depth else None):
            self.end("done")
        fewest = self.least_steps()
        if self.memory is None:
            if not self.has_seen_all(fewest):
                return
            self.cpu.end()
            self.memory = read.card_memory(self.torch, self.peaks, self.device, self.cards)
            begin_timing(self, fewest)
            self.unseen.note(self.torch, self.parameters)
            self.mark("memory_read", self.memory.get("peak_allocated_bytes"), self.seen.counted("evaluations"))
            self.watch_outermost_alone()
        is_late = time.monotonic() > self.timed_from + self.settings["timed_seconds"]
        if fewest >= min(self.first_timed + self.settings["timed_steps"], last_step(self, fewest, is_late)):
            self.end("done")

    def has_seen_all(self, fewest: int) -> bool:
        """Whether the memory of enough steps was read. An optimizer may step less often than the others."""
        wanted = steps_to_read(self)
        if self.epoch is not None:
            return bool(self.epoch.has_seen_all(fewest, wanted))
        return fewest >= wanted and (max(self.steps.values()) >= 8 * wanted or not self.is_one_idle())

    def is_one_idle(self) -> bool:
        """Whether an optimizer has made no step yet. Objects are looked through only where the counts say so."""
        return len(self.steps) < len(self.optimizers) and self.idle_optimizers() > 0

    def idle_optimizers(self) -> int:
        return int(read.idle_optimizers(self.torch, self.optimizers, self.stepped.ids() | self.steps.keys()))

    def least_steps(self) -> int:
        return min(self.steps.values(), default=0)

    def end(self, how: Any, error_type: Any = None, error_message: Any = None) -> None:
        if self.is_ended:
            return
        self.is_ended, computing = True, computing_fraction(self)
        self.seen.end()  # os._exit calls no handlers
        if self.cpu is not None:
            self.cpu.end()  # the profiler must not outlive the interpreter
        rank, world = self.place()
        noted = {"pid": os.getpid(), "rank": rank, "world_size": world, "ended": how}
        noted |= {"error_type": error_type, "error_message": error_message and read.shortened(error_message)}
        card = read.card_memory(self.torch, self.peaks, self.device, self.cards)
        device = self.device and (f"cuda:{card['index']}" if len(self.cards) > 1 else str(self.device))
        noted |= {"marks": self.marks, "device": device, "python": sys.version.split()[0], "card": card}
        noted |= self.cpu.noted() if self.cpu else {}
        noted["cards"], noted["trainings"] = len(self.cards), self.turns.trainings
        noted["empty_passes"] = (self.passes.empty, self.passes.rows)
        noted["emulated"] = bool(self.settings.get("emulated"))
        noted["has_group"], noted["loader"] = self.group is not None, self.loader
        noted["whole_run"] = self.epoch and self.epoch.seen()
        noted["raised_out_of_memory"] = self.raised and self.raised.count
        noted["faster"] = self.faster and self.faster.seen()
        noted["idle_optimizers"] = self.idle_optimizers() if self.torch else 0
        noted["unseen"], noted["computing_fraction"] = self.unseen.noted, computing
        path = os.path.join(self.settings["folder"], f"{os.getpid()}.json")
        with open(path + ".partial", "w") as file:
            json.dump(noted, file)
        os.replace(path + ".partial", path)
        if how == "done":
            sys.stdout.flush()
            if not goes_on(self):
                os._exit(0)
