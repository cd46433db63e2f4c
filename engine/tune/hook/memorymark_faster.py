"""Sets something of a training from outside, as `tune --faster` tries it, and notes what could be set and its losses.

Used by `memorymark_watch.py` for such a start only. What is set is what a line of the script would set: where the
script sets it itself afterwards, its own value stands, and `applied` does not name it.
"""

from __future__ import annotations

import gc
import inspect
import random
import sys
import weakref
from contextlib import nullcontext, suppress
from functools import wraps
from importlib import import_module
from typing import Any

import memorymark_read as read

LOSSES, LOOKED, OUTPUTS = 64, 8, 64
"""Steps whose losses are noted, batches looked at for random numbers, and tensors of an output that are followed."""
FRAMEWORKS = ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer", "transformers.trainer")


class Faster:
    """What one start sets: `settings["set"]` by name, the same names as in `engine/tune/faster/variants.py`."""

    def __init__(self, watched: Any, torch: Any) -> None:
        settings = watched.settings["faster"]
        self.torch, self.wanted, self.is_trial = torch, settings["set"], settings["is_trial"]
        self.watched, self.applied = watched, set[str]()
        self.losses: dict[int, tuple[Any, int]] = {}  # of each optimizer step their sum and number
        self.loaders: dict[Any, int] = {}
        self.roots: Any = weakref.WeakSet()
        self.singles: Any = weakref.WeakSet()  # of the roots those that were in 64 bits
        self.models: list[dict[str, Any]] = []
        self.outputs: list[Any] = []
        self.old_outputs: list[Any] = []
        self.kept_bytes = self.looked = 0
        self.is_inside = self.is_going_back = self.draws_random = False
        self.fused, self.foreach = (tuple(_optimizers_with(torch, name)) for name in ("fused", "foreach"))
        self.seed(settings["seed"])
        if "tf32" in self.wanted:
            torch.set_float32_matmul_precision("high")
            torch.backends.cudnn.allow_tf32 = True
        if "cudnn-benchmark" in self.wanted:
            torch.backends.cudnn.benchmark = True
        self.note_losses()
        self.set_loaders()
        self.note_draws()
        self.set_optimizers()
        self.set_models()

    def seed(self, seed: int) -> None:
        """Seed what a script that seeds nothing draws from, so that all starts are given the same batches."""
        self.torch.manual_seed(seed)
        random.seed(seed)
        if (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed(seed)

    def note_losses(self) -> None:
        autograd = self.torch.autograd
        go_back = autograd.backward

        def went_back(tensors: Any, *others: Any, **options: Any) -> None:
            if self.is_going_back:  # a checkpoint goes back within
                go_back(tensors, *others, **options)
                return
            if self.torch.is_tensor(tensors) and tensors.numel() == 1:
                self.note_loss(tensors)
            self.is_going_back = True
            try:
                go_back(tensors, *others, **options)
            finally:
                self.is_going_back = False
            self.old_outputs += self.outputs
            self.outputs = []

        autograd.backward = went_back

    def note_loss(self, loss: Any) -> None:
        """Add a loss to those of its optimizer step, which may have many; a card is not waited for until the end."""
        step = max(self.watched.steps.values(), default=0)
        if step < LOSSES:
            value = loss.item() if loss.device.type == "cpu" else loss.detach().double()
            total, count = self.losses.get(step, (0.0, 0))
            self.losses[step] = total + value, count + 1

    def set_loaders(self) -> None:
        """Give each loader pinned memory, and workers where rows come by number: others would come once from each."""
        data, wanted = self.torch.utils.data, self.wanted
        make, signature = data.DataLoader.__init__, inspect.signature(data.DataLoader.__init__)

        @wraps(make)  # Lightning reads the signature to make a loader like this one
        def made(*arguments: Any, **options: Any) -> None:
            given = signature.bind(*arguments, **options)
            values = given.arguments
            is_by_number = not isinstance(values.get("dataset"), data.IterableDataset)
            if is_by_number and values.get("num_workers", 0) <= wanted.get("workers", -1):
                values |= {"num_workers": wanted["workers"], "persistent_workers": True}
                self.applied.add("workers")
            if "pinned" in wanted:
                values["pin_memory"] = True
                self.applied.add("pinned")
            make(*given.args, **given.kwargs)

        if {"workers", "pinned"} & wanted.keys():
            data.DataLoader.__init__ = made

    def note_draws(self) -> None:
        """Note with what each batch of the training is loaded, and whether its rows draw random numbers."""
        kind = self.torch.utils.data.dataloader._BaseDataLoaderIter
        draw = kind.__next__

        def drawn(iterator: Any) -> Any:
            is_looked_at = self.looked < LOOKED and iterator._num_workers == 0 and iterator._num_yielded > 0
            before = self.random_states() if is_looked_at else None
            batch = draw(iterator)
            if before is not None:
                self.looked += 1
                self.draws_random |= self.random_states() != before
            if self.torch.is_grad_enabled():
                kept = bool(getattr(iterator, "_persistent_workers", False))
                key = (iterator._num_workers, bool(iterator._pin_memory), kept, iterator._dataset_kind == 0)
                self.loaders[key] = self.loaders.get(key, 0) + 1
            return batch

        kind.__next__ = drawn

    def random_states(self) -> tuple[Any, ...]:
        numpy = sys.modules.get("numpy")
        of_numpy = numpy.random.get_state()[1:3] if numpy is not None else (None, None)
        of_torch = self.torch.random.get_rng_state().numpy().tobytes() if numpy is not None else None
        return random.getstate(), None if of_numpy[0] is None else of_numpy[0].tobytes(), of_numpy[1], of_torch

    def set_optimizers(self) -> None:
        for name, kinds in (("fused", self.fused), ("foreach", self.foreach)):
            for kind in kinds if name in self.wanted else ():
                self.set_optimizer(kind, name)

    def set_optimizer(self, kind: Any, name: str) -> None:
        make, signature = kind.__init__, inspect.signature(kind.__init__)
        other = "foreach" if name == "fused" else "fused"

        @wraps(make)
        def made(*arguments: Any, **options: Any) -> None:
            given = signature.bind(*arguments, **options)
            given.arguments[name] = True
            if other in signature.parameters:
                given.arguments[other] = None
            make(*given.args, **given.kwargs)
            self.applied.add(name)

        kind.__init__ = made

    def set_models(self) -> None:
        """Run each outermost module of the training as `around` says."""
        torch = self.torch
        call = torch.nn.Module._call_impl

        def called(module: Any, *inputs: Any, **options: Any) -> Any:
            is_part = self.is_inside or self.is_going_back  # a checkpoint runs its modules again on the way back
            if torch.compiler.is_compiling() or is_part or not (module.training and torch.is_grad_enabled()):
                return call(module, *inputs, **options)
            if next(module.parameters(), None) is None:  # a loss, or a transform of the data
                return call(module, *inputs, **options)
            self.is_inside = True
            try:
                return self.around(call, module, inputs, options)
            finally:
                self.is_inside = False

        torch.nn.Module._call_impl = called

    def around(self, call: Any, module: Any, inputs: Any, options: Any) -> Any:
        torch, device = self.torch, next(module.parameters()).device.type
        if module not in self.roots:
            self.roots.add(module)
            self.meet(module, device)
        self.follow_old_outputs()
        is_single = module in self.singles
        for is_wanted, change in (("channels-last" in self.wanted, _channels_last), (is_single, _single)):
            if is_wanted:
                inputs = [change(torch, each) for each in inputs]
                options = {name: change(torch, each) for name, each in options.items()}
        is_autocast = "bf16" in self.wanted and not torch.is_autocast_enabled(device)
        with torch.autocast(device, dtype=torch.bfloat16) if is_autocast else nullcontext():
            result = call(module, *inputs, **options)
        if is_autocast:
            self.applied.add("bf16")
            result = _converted(torch, result, torch.bfloat16, torch.float32)
        if is_single:  # what follows goes on in the type that the script chose
            result = _converted(torch, result, torch.float32, torch.float64)
        self.outputs += [weakref.ref(each) for each in _tensors(torch, result) if each.requires_grad]
        return result

    def meet(self, module: Any, device: str) -> None:
        """Note what an outermost module is, and set what is set once."""
        torch, parts = self.torch, list(module.modules())
        configs = [part.config for part in parts if getattr(getattr(part, "config", None), "use_cache", False) is True]
        compiled: Any = getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", ())
        convolutions = (torch.nn.Conv2d, torch.nn.ConvTranspose2d)
        parameters = list(module.parameters())
        self.models.append(
            {
                "name": type(module).__name__,
                "device": device,
                "convolutions": sum(isinstance(part, convolutions) for part in parts),
                "is_channels_last": any(_is_channels_last(torch, each) for each in parameters),
                "uses_cache": bool(configs),
                "is_compiled": any(isinstance(p, compiled) or p._compiled_call_impl is not None for p in parts),
                "is_autocast": bool(torch.is_autocast_enabled(device)),
                "dtypes": sorted({str(each.dtype).removeprefix("torch.") for each in parameters}),
            }
        )
        if "no-cache" in self.wanted and configs:
            for config in configs:
                config.use_cache = False
            self.applied.add("no-cache")
        if "fp32" in self.wanted and any(each.dtype is torch.float64 for each in parameters):
            self.singles.add(module)
            module.float()  # the parameters stay the same objects, so the optimizer goes on with them
            self.applied.add("fp32")
        if "channels-last" in self.wanted:
            module.to(memory_format=torch.channels_last)
            self.applied.add("channels-last")
        if "compile" in self.wanted:
            if self.is_trial:  # the same dropout as without, so that the losses can be compared
                inductor: Any = import_module("torch._inductor.config")
                inductor.fallback_random = True
            module.forward = torch.compile(module.forward)
            self.applied.add("compile")

    def follow_old_outputs(self) -> None:
        """Count the bytes of outputs that have been gone back through and are still held; free them if wanted."""
        alive = [each for reference in self.old_outputs if (each := reference()) is not None]
        self.kept_bytes = max(self.kept_bytes, sum(each.numel() * each.element_size() for each in alive))
        if "release-outputs" in self.wanted:
            for each in alive:
                for held in filter(self.torch.is_tensor, (each, each._base)):  # a view holds what it is a view of
                    held.data = held.data.new_empty(0)
                self.applied.add("release-outputs")
            self.old_outputs = []
        else:
            self.old_outputs = [weakref.ref(each) for each in alive]

    def seen(self) -> dict[str, Any]:
        torch = self.torch
        precision = None
        with suppress(RuntimeError):  # a script may have used the newer way to set it
            precision = torch.get_float32_matmul_precision()
        if precision == "high":
            self.applied.add("tf32")
        if torch.backends.cudnn.benchmark:
            self.applied.add("cudnn-benchmark")
        made = [each for each in read._optimizers(torch) if id(each) in self.watched.optimizers]
        return {
            "applied": sorted(self.applied & self.wanted.keys()),
            "losses": [float(total / count) for total, count in self.losses.values()],
            "loaders": [[*key, count] for key, count in self.loaders.items()],
            "draws_random": self.draws_random,
            "models": self.models,
            "kept_bytes": self.kept_bytes,
            "optimizers": [
                {
                    "name": type(each).__name__,
                    "tensors": sum(len(group["params"]) for group in each.param_groups),
                    "can_be_fused": isinstance(each, self.fused),
                    "can_be_foreach": isinstance(each, self.foreach),
                    "is_fused": any(group.get("fused") for group in each.param_groups),
                    "is_foreach": any(group.get("foreach") for group in each.param_groups),
                }
                for each in made
            ],
            "matmul_precision": precision,
            "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
            "framework": framework(),
        }


def framework() -> str:
    """Return which library trains: one whose Trainer there is.

    `lightning` loads its trainer for Fabric, too, and transformers loads accelerate even where it only makes the model.
    """
    trainers = {name: getattr(sys.modules.get(name), "Trainer", None) for name in FRAMEWORKS}
    kinds = {type(each) for each in gc.get_objects()} if any(trainers.values()) else set()
    made = (name for name, trainer in trainers.items() if trainer and any(issubclass(kind, trainer) for kind in kinds))
    loaded = next((name.partition(".")[0] for name in made), None)
    accelerated = getattr(getattr(sys.modules.get("accelerate.state"), "AcceleratorState", None), "_shared_state", None)
    return loaded or ("accelerate" if accelerated else "torch")


def _optimizers_with(torch: Any, name: str) -> list[Any]:
    """Return the optimizers of torch that take an option."""
    kinds = [each for each in vars(torch.optim).values() if isinstance(each, type)]
    return [each for each in kinds if name in inspect.signature(each).parameters]


def _is_channels_last(torch: Any, tensor: Any) -> bool:
    return tensor.ndim == 4 and tensor.is_contiguous(memory_format=torch.channels_last) and not tensor.is_contiguous()


def _channels_last(torch: Any, value: Any) -> Any:
    is_image = issubclass(type(value), torch.Tensor) and value.ndim == 4 and value.is_floating_point()
    return value.contiguous(memory_format=torch.channels_last) if is_image else value


def _tensors(torch: Any, value: Any) -> list[Any]:
    """Return tensors in what a module gave."""
    waiting: list[Any] = [value]
    found: list[Any] = []
    while waiting and len(found) < OUTPUTS:
        each = waiting.pop()
        if issubclass(type(each), torch.Tensor):
            found.append(each)
        elif callable(getattr(each, "values", None)):
            waiting += each.values()
        elif isinstance(each, (list, tuple)):
            waiting += each
    return found


def _single(torch: Any, value: Any) -> Any:
    is_double = issubclass(type(value), torch.Tensor) and value.dtype is torch.float64
    return value.float() if is_double else value


def _converted(torch: Any, value: Any, given: Any, wanted: Any) -> Any:
    """Return what a module gave with its tensors of one type in another, as `accelerate` returns those of bf16."""
    if issubclass(type(value), torch.Tensor):
        return value.to(wanted) if value.dtype is given else value
    if isinstance(value, dict):
        for name in list(value):
            value[name] = _converted(torch, value[name], given, wanted)
    elif isinstance(value, list):
        value[:] = [_converted(torch, each, given, wanted) for each in value]
    elif isinstance(value, tuple):
        parts = [_converted(torch, each, given, wanted) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
