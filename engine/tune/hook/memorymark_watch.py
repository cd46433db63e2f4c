"""Records what a training does, in the user's own process. `sitecustomize.py` starts it once torch has been imported.

It records each optimizer step, forward pass and batch, reads the memory they took, and ends the process after the steps
that it was to watch. It draws no random number and changes no tensor: the losses of those steps are those of a run
without it. The record goes into one JSON file per process, in a folder of MemoryMark's; nothing is sent anywhere.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import sys
import time
from importlib import import_module
from typing import Any

import memorymark_read as read
import memorymark_seen

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
        self.device: Any = None
        self.profile: Any = None
        self.memory: Any = None
        self.first_timed, self.timed_from = 0, 0.0
        self.marks: list[Any] = []
        self.steps: dict[int, int] = {}
        self.held: dict[int, int] = {}
        self.gradients: list[Any] = []
        self.events: list[list[int]] = []
        self.optimizers: set[int] = set()
        self.went_back = False
        self.epoch: Any = None
        self.faster: Any = None
        self.seen = memorymark_seen.Seen(settings.get("folder"))
        self.forwards = self.evaluations = 0
        self.group: Any = None
        self.loader = (0, 0)  # the most workers of a loader that fed the training, and the batches they make ahead

    def arm(self, torch: Any) -> None:
        optim, loaders = import_module("torch.optim.optimizer"), import_module("torch.utils.data.dataloader")
        modules, self.torch = torch.nn.modules.module, torch
        self.mark("armed", torch.__version__, sys.argv)
        self.seen.once("imported")
        folder = self.settings["folder"]
        if len(folder) < 80:  # a socket's path has at most 104 bytes; killed workers do not remove theirs
            import_module("multiprocessing.process").current_process()._config.setdefault("tempdir", folder)
        if self.settings.get("faster"):
            self.faster = import_module("memorymark_faster").Faster(self, torch)
        draw, make_optimizer = loaders._BaseDataLoaderIter.__next__, optim.Optimizer.__init__

        def made_optimizer(optimizer: Any, *others: Any, **options: Any) -> None:
            self.optimizers.add(id(optimizer))
            self.steps.pop(BY_HAND, None)  # a network that was trained before it was made, if any, is another's
            self.seen.count("optimizers")
            make_optimizer(optimizer, *others, **options)

        def drawn(iterator: Any) -> Any:
            self.mark("loading")
            self.depth += 1  # a transform may be a module, too: what it is given is no batch of the training
            try:
                batch = draw(iterator) if self.epoch is None else self.epoch.draw(iterator, draw)
            finally:
                self.depth -= 1
                self.mark("loaded")
            inputs = read.inputs_of(torch, batch)
            self.mark("batch", torch.is_grad_enabled(), *inputs, *read.rows_drawn(torch, iterator))
            if torch.is_grad_enabled():
                workers = iterator._num_workers
                self.loader = max(self.loader, (workers, workers * (getattr(iterator, "_prefetch_factor", 0) or 0)))
            self.seen.count("batches")
            self.seen.put("batch_size", (inputs[0] or [0])[0])
            return batch

        if self.settings.get("whole_run"):
            self.epoch = import_module("memorymark_epoch").Epoch(self, torch, loaders._BaseDataLoaderIter)
        optim.Optimizer.__init__, loaders._BaseDataLoaderIter.__next__ = made_optimizer, drawn
        optim.register_optimizer_step_pre_hook(lambda *_: self.phase("optimizer_step"))
        optim.register_optimizer_step_post_hook(lambda optimizer, *_: self.after_step(id(optimizer)))
        modules.register_module_forward_pre_hook(lambda module, _: self.before_forward(module))
        modules.register_module_forward_hook(self.after_forward, with_kwargs=True, always_call=True)
        if (self.settings["limit_bytes"] or self.settings.get("emulated")) and torch.version.cuda:
            torch.cuda._lazy_call(self.limit_memory)  # when the script opens the card, not before
        report = sys.excepthook

        def failed(kind: Any, exc: Any, trace: Any) -> None:
            self.fail(exc)
            report(kind, exc, trace)

        sys.excepthook = failed
        atexit.register(self.end, "exit")
        self.see_failed_ranks(import_module("multiprocessing.process").BaseProcess)

    def see_failed_ranks(self, kind: Any) -> None:
        """Note how a rank of multiprocessing ends: its error never reaches `sys.excepthook`, a fork runs no handlers.

        torch's own wrapper of a rank turns its error into an exit.
        """
        run = kind.run

        def ran(process: Any) -> None:
            if process.pid != os.getpid():  # the script calls it without a process of its own
                run(process)
                return
            before = self.forwards
            try:
                run(process)
            except (Exception, SystemExit) as raised:
                error = raised.__context__ if isinstance(raised, SystemExit) and raised.code else raised
                if isinstance(error, Exception) and self.forwards > before:
                    self.fail(error)
                raise
            finally:
                self.seen.end()

        kind.run = ran

    def fail(self, error: Any) -> None:
        is_cut = self.epoch is not None and self.epoch.is_ended_by_cut(type(error), str(error))
        self.end("cut" if is_cut else "error", type(error).__name__, str(error))

    def place(self) -> tuple[int, int]:
        """Return the rank of this process and how many there are; of a group also when it has been left."""
        self.group = self.group or read.place_in_group(self.torch)
        return self.group or (int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))

    def is_alone(self) -> bool:
        """Whether no other process waits for this one: it has no group, or stands in for a rank of one."""
        return bool(self.settings.get("emulated")) or self.place()[1] == 1

    def limit_memory(self) -> None:
        total_bytes = self.torch.cuda.get_device_properties(self.torch.cuda.current_device()).total_memory
        emulated = self.settings.get("emulated") or {}
        free_bytes = (self.settings["limit_bytes"] or total_bytes) - emulated.get("communication_bytes", 0)
        self.torch.cuda.set_per_process_memory_fraction(max(min(free_bytes / total_bytes, 1.0), 0.0))

    def mark(self, name: Any, *details: Any) -> None:
        self.marks.append([time.monotonic(), name, *details])
        if self.profile is not None:  # the same mark among the allocator's events
            with self.torch.autograd.profiler.record_function(f"memorymark.{len(self.marks) - 1}"):
                pass

    def phase(self, name: Any) -> None:
        is_read = self.memory is None and self.device is not None and self.device.type == "cuda"
        card = self.torch.cuda
        self.mark("phase", name, *((card.max_memory_allocated(), card.memory_allocated()) if is_read else (None, None)))

    def before_forward(self, module: Any) -> None:
        if self.torch.compiler.is_compiling():  # a compiled model is watched from outside, to keep its graph whole
            return
        self.depth += 1
        if self.depth > 1:
            return
        if module.training and self.torch.is_grad_enabled():
            if self.went_back:
                self.went_back = False
                self.after_step(BY_HAND)
            self.start(next((t.device for t in module.parameters()), None))
            self.forwards += 1
            self.seen.count("forwards")
            self.phase("forward")
            return
        self.seen.count("evaluations")
        if self.epoch is not None and self.epoch.has_not_trained():
            self.evaluations += 1
            self.phase("evaluation")

    def after_forward(self, module: Any, arguments: Any, options: Any, *found: Any) -> None:
        """Note the end of a forward pass; after one that failed torch leaves the options out, and nothing was found."""
        if not self.torch.compiler.is_compiling():
            self.depth -= 1
            if self.depth == 0 and found and module.training and self.torch.is_grad_enabled():
                inputs = read.inputs_of(self.torch, [arguments, options])
                self.mark("forward", sum(t.numel() for t in module.parameters()), *inputs)
                self.phase("backward")
                if not self.optimizers and (result := read.first_with_gradient(self.torch, found[0])) is not None:
                    result.register_hook(self.note_backward)

    def note_backward(self, _: Any) -> None:
        """Note a backward pass of a script that has made no optimizer: its step ends where the next forward begins."""
        self.went_back = not self.optimizers

    def start(self, device: Any) -> None:
        if self.device is None and device is not None:
            self.device = device
            if device.type == "cpu":
                self.held = read.held_bytes(self.torch, self.optimizers)
                self.gradients = read.gradients(self.torch)
                kinds = [self.torch.profiler.ProfilerActivity.CPU]
                self.profile = self.torch.profiler.profile(activities=kinds, profile_memory=True).__enter__()

    def after_step(self, optimizer: Any) -> None:
        self.seen.count("steps")
        self.seen.now("stepped")
        self.place()
        if self.device is None:  # no forward pass was seen: the steps after this one are watched
            self.start(self.torch.device("cuda" if self.torch.cuda.is_initialized() else "cpu"))
            return
        if self.memory is not None and self.device.type == "cuda":
            self.torch.cuda.synchronize()
        self.steps[optimizer] = self.steps.get(optimizer, 0) + 1
        self.mark("step", optimizer)
        fewest, most, wanted = self.least_steps(), max(self.steps.values()), self.settings["memory_steps"]
        if self.epoch is not None:
            wanted = self.epoch.steps_wanted(wanted)
        if fewest < wanted or (len(self.steps) < len(self.optimizers) and most < 8 * wanted):
            return  # an optimizer may step less often than the others
        if self.memory is None:
            self.memory, self.first_timed, self.timed_from = self.read_memory(), fewest, time.monotonic()
            self.mark("memory_read")
        is_late = time.monotonic() > self.timed_from + self.settings["timed_seconds"]
        if fewest >= min(self.first_timed + self.settings["timed_steps"], self.last_step(fewest, is_late)):
            self.end("done")

    def last_step(self, now: int, is_late: bool) -> int:
        """Return the step after which this process ends, the same in all ranks: otherwise one would wait for another.

        The first rank that is late makes one more step, and informs the others by a file next to the records. Of
        several hosts one decides, and as many steps earlier as the others need to be told.
        """
        if self.is_alone():
            return now if is_late else sys.maxsize
        host = self.settings.get("host") or {"decides": True, "notice_seconds": 0.0}
        path = os.path.join(self.settings["folder"], "last-step")
        if is_late and host["decides"] and not os.path.exists(path):
            seconds_a_step = (time.monotonic() - self.timed_from) / max(now - self.first_timed, 1)
            with open(f"{path}.{os.getpid()}", "w") as file:
                file.write(str(now + 1 + math.ceil(host["notice_seconds"] / max(seconds_a_step, 0.001))))
            os.replace(file.name, path)
        if not os.path.exists(path):
            return sys.maxsize
        with open(path) as file:
            return int(file.read())

    def least_steps(self) -> int:
        return min(self.steps.values(), default=0)

    def read_memory(self) -> dict[str, Any]:
        if self.profile is not None:
            profile, self.profile = self.profile, None
            profile.__exit__(None, None, None)
            self.events = read.allocator_events(profile)
            for address in [address for gradient, address in self.gradients if gradient() is None]:
                self.held.pop(address, None)
        return dict(read.card_memory(self.torch))

    def end(self, how: Any, error_type: Any = None, error_message: Any = None) -> None:
        if self.is_ended:
            return
        self.is_ended = True
        self.seen.end()  # os._exit calls no handlers
        if self.profile is not None:
            self.read_memory()  # the profiler must not outlive the interpreter
        rank, world = self.place()
        noted = {"pid": os.getpid(), "rank": rank, "world_size": world, "ended": how}
        noted |= {"error_type": error_type, "error_message": error_message and read.shortened(error_message)}
        noted |= {"marks": self.marks, "device": self.device and str(self.device), "python": sys.version.split()[0]}
        noted |= {"held": list(self.held.items()), "events": self.events, "card": read.card_memory(self.torch)}
        noted["emulated"] = bool(self.settings.get("emulated"))
        noted["host"] = (self.settings.get("host") or {}).get("name")
        noted["has_group"], noted["loader"] = self.group is not None, self.loader
        noted["whole_run"] = self.epoch and self.epoch.seen()
        noted["faster"] = self.faster and self.faster.seen()
        noted["idle_optimizers"] = read.idle_optimizers(self.torch, self.optimizers, self.steps) if self.torch else 0
        path = os.path.join(self.settings["folder"], f"{os.getpid()}.json")
        with open(path + ".partial", "w") as file:
            json.dump(noted, file)
        os.replace(path + ".partial", path)
        if how == "done":
            sys.stdout.flush()
            if not self.is_alone():
                time.sleep(60)  # the other ranks finish their step; MemoryMark then ends them all
            os._exit(0)
