"""Sets something of a training from outside, as `tune --faster` tries it, and notes what could be set and its losses.

What is set is what a line of the script would set. A value that the script sets afterwards stands: see `applied`.
"""

from __future__ import annotations

import gc
import inspect
import os
import random
import sys
import threading
import weakref
from contextlib import nullcontext
from functools import partial, wraps
from importlib import import_module
from typing import Any

import memorymark_read as read
from memorymark_compiled import is_compiled, see_compiled
from memorymark_names import configs_with_cache, identifier, names_held
from memorymark_outputs import Outputs
from memorymark_tensors import (
    begins_with_rows,
    changed,
    channels_last,
    converted,
    is_channels_last,
    is_image,
    single,
)

LOSSES, LOOKED = 64, 8
"""Steps whose losses are noted, and batches looked at for random numbers."""
EXPANDABLE = "expandable_segments:True"
FRAMEWORKS = ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer", "transformers.trainer")
FABRICS = ("lightning.fabric.wrappers", "lightning_fabric.wrappers")


class Faster:
    """What one start sets: `settings["set"]` by name, the same names as in `engine/tune/faster/variants.py`."""

    def __init__(self, watched: Any, torch: Any) -> None:
        settings = watched.settings["faster"]
        self.torch, self.wanted, self.is_trial = torch, settings["set"], settings["is_trial"]
        self.watched, self.applied = watched, set[str]()
        self.losses: dict[int, tuple[Any, int]] = {}  # of each optimizer step their sum and number
        self.loaders: dict[Any, int] = {}
        self.roots: Any = weakref.WeakKeyDictionary()  # each with what was noted of it
        self.singles: Any = weakref.WeakSet()  # of the roots those that were in 64 bits
        self.models: list[dict[str, Any]] = []
        self.met: list[Any] = []  # the modules of these
        self.to_look_inside: dict[str, Any] | None = None
        self.updates = 0  # of a GradScaler
        self.outputs = Outputs(torch)
        self.looked = 0
        self.is_inside = self.is_going_back = self.draws_random = False
        self.evaluating: set[int] = set()  # the threads that are within a module that does not train
        self.fused, self.foreach = (tuple(_optimizers_with(torch, name)) for name in ("fused", "foreach"))
        self.seed(settings["seed"])
        self.mask_seed = settings.get("mask_seed")
        if "tf32" in self.wanted:
            torch.set_float32_matmul_precision("high")
            torch.backends.cudnn.allow_tf32 = True
        if "cudnn-benchmark" in self.wanted:
            torch.backends.cudnn.benchmark = True
        self.note_losses()
        if {"workers", "pinned"} & self.wanted.keys():
            watched.loaders.change(self.set_loaders)
        self.note_draws()
        self.set_optimizers()
        self.set_models()

    def seed(self, seed: int) -> None:
        """Seed the generators left unseeded by a script, so that all starts get the same batches."""
        self.torch.manual_seed(seed)
        random.seed(seed)
        if (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed(seed)

    def note_losses(self) -> None:
        autograd = self.torch.autograd
        go_back = autograd.backward

        def went_back(tensors: Any, *others: Any, **options: Any) -> None:
            if self.is_going_back:  # a checkpoint runs its modules again in the backward pass
                go_back(tensors, *others, **options)
                return
            if self.torch.is_tensor(tensors) and tensors.numel() == 1 and not tensors.is_meta:
                self.note_loss(tensors)
            self.is_going_back = True
            try:
                go_back(tensors, *others, **options)
            finally:
                self.is_going_back = False
            self.outputs.gone_back()

        autograd.backward = went_back
        scaler = getattr(self.torch.amp, "GradScaler", self.torch.cuda.amp.GradScaler)
        update = scaler.update

        @wraps(update)
        def updated(*arguments: Any, **options: Any) -> None:
            self.updates += 1  # after every step, also one that it left out, which a fused optimizer leaves out inside
            update(*arguments, **options)

        scaler.update = updated

    def note_loss(self, loss: Any) -> None:
        """Add a loss to those of its optimizer step, which may have many; a card is not waited for until the end."""
        step = self.updates or max(self.watched.steps.counts.values(), default=0)
        if step < LOSSES:
            kept_as = self.torch.promote_types(loss.dtype, self.torch.float32)  # a Mac's GPU has no 64 bits
            value = loss.item() if loss.device.type == "cpu" else loss.detach().to(kept_as)
            total, count = self.losses.get(step, (0.0, 0))
            self.losses[step] = total + value, count + 1

    def set_loaders(self, _: Any, kind: Any) -> None:
        """Give each loader of a class pinned memory, and workers where rows come by number, or each would have all."""
        data, wanted = self.torch.utils.data, self.wanted
        make, signature = kind.__init__, inspect.signature(kind.__init__)

        @wraps(make)  # Lightning reads the signature to make a loader like this one
        def made(*arguments: Any, **options: Any) -> None:
            given = signature.bind(*arguments, **options)
            values = given.arguments
            is_by_number = not isinstance(values.get("dataset"), data.IterableDataset)
            if is_by_number and values.get("num_workers", 0) <= wanted.get("workers", -1):
                values["num_workers"] = wanted["workers"]
                self.applied.add("workers")
            if "pinned" in wanted:
                values["pin_memory"] = True
                self.applied.add("pinned")
            make(*given.args, **given.kwargs)

        kind.__init__ = made

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
            if not _takes(type(arguments[0]), name):  # a class of the script's own, which no line can give it to
                make(*arguments, **options)
                return
            given = signature.bind(*arguments, **options)
            given.arguments[name] = True
            if other in signature.parameters:
                given.arguments[other] = None
            make(*given.args, **given.kwargs)
            self.applied.add(name)

        kind.__init__ = made

    def set_models(self) -> None:
        torch = self.torch
        call = torch.nn.Module._call_impl

        def called(module: Any, *inputs: Any, **options: Any) -> Any:
            is_looked_at = self.to_look_inside is not None or not self.is_inside
            if torch.compiler.is_compiling() or not is_looked_at or read.is_traced(torch):
                return call(module, *inputs, **options)
            return run(partial(call, module), module, inputs, options)

        def run(call: Any, module: Any, inputs: Any, options: Any) -> Any:
            if self.is_inside and self.to_look_inside is not None:  # a library may enter autocast within the model
                self.to_look_inside["is_autocast"] |= _is_autocast(torch, self.to_look_inside["device"])
                self.to_look_inside = None
            thread = threading.get_ident()
            # a checkpoint runs its modules again on the way back; another thread may evaluate meanwhile
            is_part = self.is_inside or self.is_going_back or thread in self.evaluating
            if is_part or next(module.parameters(), None) is None:  # a loss, or a transform of the data
                return call(*inputs, **options)
            if not (read.is_training(torch, module) and self.watched.has_begun()):
                self.evaluating.add(thread)  # parts of a module that does not train are no models of their own
                try:
                    return call(*inputs, **options)
                finally:
                    self.evaluating.discard(thread)
            self.is_inside = True
            try:
                return self.around(call, module, inputs, options)
            finally:
                self.is_inside = False

        torch.nn.Module._call_impl = called
        see_compiled(torch, run)

    def around(self, call: Any, module: Any, inputs: Any, options: Any) -> Any:
        torch, device = self.torch, next(module.parameters()).device
        known = self.roots.get(module, {}).get("device")
        is_met = known in (device.type, "cuda")  # the module may have run on the CPU before it was moved
        met = None if is_met else self.meet(module, device.type, [inputs, options])
        is_on_card = met is not None and device.type == "cuda"
        if is_on_card and self.mask_seed is not None:
            torch.cuda.manual_seed_all(self.mask_seed)
            self.mask_seed = None
        before = torch.cuda.get_rng_state(device) if is_on_card else None
        self.follow_outputs()
        is_single = module in self.singles
        for is_wanted, change in (("channels-last" in self.wanted, channels_last), (is_single, single)):
            if is_wanted:
                inputs, options = changed(torch, inputs, change), changed(torch, options, change)
        is_autocast = "bf16" in self.wanted and not _is_autocast(torch, device.type)
        with torch.autocast(device.type, dtype=torch.bfloat16) if is_autocast else nullcontext():
            result = call(*inputs, **options)
        if met is not None:  # an encoder has the setting of a cache, too, and gives none back
            met["uses_cache"] &= getattr(result, "past_key_values", None) is not None
            met["draws"] = is_on_card and not torch.equal(before, torch.cuda.get_rng_state(device))
        if is_autocast:
            self.applied.add("bf16")
            result = converted(torch, result, torch.bfloat16, torch.float32)
        if is_single:  # what follows goes on in the type that the script chose
            result = converted(torch, result, torch.float32, torch.float64)
        self.outputs.give(result)
        return result

    def meet(self, module: Any, device: str, given: Any) -> dict[str, Any]:
        """Note what an outermost module is, and is given first where it trains, and set what is set once."""
        torch, parts = self.torch, list(module.modules())
        configs = configs_with_cache(module)
        convolutions = (torch.nn.Conv2d, torch.nn.ConvTranspose2d)
        parameters = list(module.parameters())
        noted = {
            "name": identifier(type(module).__name__),
            "device": device,
            "is_of_torch": is_of_torch(module),
            "convolutions": sum(isinstance(part, convolutions) for part in parts),
            "any_convolutions": sum(isinstance(part, torch.nn.modules.conv._ConvNd) for part in parts),
            "is_channels_last": any(is_channels_last(torch, each) for each in parameters),
            "takes_images": any(map(is_image, read.some_tensors(torch, given))),
            "begins_with_rows": begins_with_rows(torch, given),
            "uses_cache": bool(configs),
            "cached_by": [path for path, _ in configs],
            "is_compiled": any(map(is_compiled, parts)),
            "is_autocast": _is_autocast(torch, device),
            "dtypes": sorted({str(each.dtype).removeprefix("torch.") for each in parameters}),
        }
        met: dict[str, Any] | None = self.roots.get(module)
        if met is None:
            met = self.roots[module] = {}
            self.models.append(met)
            self.met.append(weakref.ref(module))
            self.change(module, configs, parameters)
        met |= noted
        if "bf16" not in self.wanted:
            self.to_look_inside = met
        return met

    def change(self, module: Any, configs: list[Any], parameters: list[Any]) -> None:
        torch = self.torch
        if "no-cache" in self.wanted and configs:
            for _, config in configs:
                config.use_cache = False
            self.applied.add("no-cache")
        if "fp32" in self.wanted and any(each.dtype is torch.float64 for each in parameters):
            self.singles.add(module)
            module.float()  # the parameters stay the same objects, so the optimizer goes on with them
            self.applied.add("fp32")
        if "channels-last" in self.wanted:
            torch.nn.Module.to(module, memory_format=torch.channels_last)  # some classes have a `to` of their own
            self.applied.add("channels-last")
        if "compile" in self.wanted:
            if self.is_trial:  # the same dropout as without, so that the losses can be compared
                inductor: Any = import_module("torch._inductor.config")
                inductor.fallback_random = True
            vars(module)["forward"] = torch.compile(module.forward)  # Fabric's would set it in what it wraps, too
            self.applied.add("compile")

    def follow_outputs(self) -> None:
        if "release-outputs" not in self.wanted:
            self.outputs.held()
        elif self.outputs.free():
            self.applied.add("release-outputs")

    def seen(self) -> dict[str, Any]:
        torch = self.torch
        precision = matmul_precision(torch)
        if precision == "high":
            self.applied.add("tf32")
        if torch.backends.cudnn.benchmark:
            self.applied.add("cudnn-benchmark")
        made = [each for each in read._optimizers(torch) if id(each) in self.watched.steps.optimizers]
        names = names_held(torch, self.met)
        return {
            "applied": sorted(self.applied & self.wanted.keys()),
            "losses": [float(total / count) for total, count in self.losses.values()],
            "loaders": [[*key, count] for key, count in self.loaders.items()],
            "draws_random": self.draws_random,
            "models": [{**each, "held_as": name} for each, name in zip(self.models, names, strict=True)],
            "kept_bytes": self.outputs.kept_bytes,
            "optimizers": [
                {
                    "name": type(each).__name__,
                    "tensors": sum(len(group["params"]) for group in each.param_groups),
                    "can_be_fused": isinstance(each, self.fused) and _takes(type(each), "fused"),
                    "can_be_foreach": isinstance(each, self.foreach) and _takes(type(each), "foreach"),
                    "is_fused": any(group.get("fused") for group in each.param_groups),
                    "is_foreach": any(group.get("foreach") for group in each.param_groups),
                }
                for each in made
            ],
            "matmul_precision": precision,
            "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
            "is_expandable": any(EXPANDABLE in value for name, value in os.environ.items() if "ALLOC_CONF" in name),
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
    wrappers = (getattr(sys.modules.get(name), "_FabricModule", None) for name in FABRICS)
    if loaded is None and any(read.objects_of(wrapper) for wrapper in wrappers if wrapper is not None):
        return "fabric"
    accelerated = getattr(getattr(sys.modules.get("accelerate.state"), "AcceleratorState", None), "_shared_state", None)
    return loaded or ("accelerate" if accelerated else "torch")


def is_of_torch(module: Any) -> bool:
    """Whether the `forward` of a module's class is one of torch.nn; False for scripted and traced modules."""
    forward = getattr(type(module), "forward", None)
    return str(getattr(forward, "__module__", "")).startswith("torch.nn.")


def matmul_precision(torch: Any) -> str | None:
    """Return the precision of fp32 products in the words of `set_float32_matmul_precision`; None where unknown."""
    newer = getattr(torch.backends.cuda.matmul, "fp32_precision", None)  # this reads what either way has set
    if newer is None:
        return str(torch.get_float32_matmul_precision())
    return {"tf32": "high", "bf16": "medium", "ieee": "highest", "none": "highest"}.get(newer)


def _takes(kind: Any, name: str) -> bool:
    of_torch = str(getattr(kind.step, "__module__", "")).startswith("torch.optim")
    return of_torch and name in inspect.signature(kind.__init__).parameters


def _optimizers_with(torch: Any, name: str) -> list[Any]:
    kinds = [each for each in vars(torch.optim).values() if isinstance(each, type)]
    return [each for each in kinds if name in inspect.signature(each).parameters]


def _is_autocast(torch: Any, device: str) -> bool:
    try:
        return bool(torch.is_autocast_enabled(device))
    except TypeError:  # torch before 2.4 asks each kind by a function of its own
        return bool(torch.is_autocast_cpu_enabled() if device == "cpu" else torch.is_autocast_enabled())
