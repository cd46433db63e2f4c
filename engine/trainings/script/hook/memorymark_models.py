"""Follows the outermost modules of a training for `tune --faster`, and applies the raced settings to each."""

from __future__ import annotations

import threading
import weakref
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from itertools import dropwhile
from typing import Any

import memorymark_read as read
from memorymark_compiled import is_compiled, see_compiled
from memorymark_tensors import (
    Outputs,
    begins_with_rows,
    changed,
    channels_last,
    converted,
    is_channels_last,
    is_image,
    single,
)

LONGEST_NAME = 60
WRAPPERS = ("module", "_orig_mod")  # attributes in which DDP and torch.compile hold the wrapped module


class Models:
    """The outermost modules that train. `noted` has what each is, in the order in which they were met."""

    def __init__(self, faster: Any) -> None:
        self.faster, self.torch, self.wanted = faster, faster.torch, faster.wanted
        self.applied = faster.applied
        self.roots: Any = weakref.WeakKeyDictionary()  # each with what was noted of it
        self.singles: Any = weakref.WeakSet()  # of the roots those that were in 64 bits
        self.noted: list[dict[str, Any]] = []
        self.met: list[Any] = []  # the modules of these
        self.to_look_inside: dict[str, Any] | None = None
        self.is_inside = False
        self.evaluating: set[int] = set()  # the threads that are within a module that does not train
        self.outputs = Outputs(self.torch)
        self.mask_seed = faster.settings.get("mask_seed")

    def follow(self) -> None:
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
            is_part = self.is_inside or self.faster.losses.is_going_back or thread in self.evaluating
            if is_part or next(module.parameters(), None) is None:  # a loss, or a transform of the data
                return call(*inputs, **options)
            if not (read.is_training(torch, module) and self.faster.watched.has_begun()):
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
            self.noted.append(met)
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
            if self.faster.settings["is_trial"]:  # the same dropout as without, so that the losses can be compared
                inductor: Any = import_module("torch._inductor.config")
                inductor.fallback_random = True
            # assigned past Fabric's wrapper, which would set it in the wrapped module, too
            vars(module)["forward"] = torch.compile(module.forward)
            self.applied.add("compile")

    def follow_outputs(self) -> None:
        if "release-outputs" not in self.wanted:
            self.outputs.held()
        elif self.outputs.free():
            self.applied.add("release-outputs")

    def seen(self) -> list[dict[str, Any]]:
        names = names_held(self.torch, self.met)
        return [{**each, "held_as": name} for each, name in zip(self.noted, names, strict=True)]


def is_of_torch(module: Any) -> bool:
    """Whether the `forward` of a module's class is one of torch.nn; False for scripted and traced modules."""
    forward = getattr(type(module), "forward", None)
    return str(getattr(forward, "__module__", "")).startswith("torch.nn.")


def _is_autocast(torch: Any, device: str) -> bool:
    try:
        return bool(torch.is_autocast_enabled(device))
    except TypeError:  # torch before 2.4 asks each kind by a function of its own
        return bool(torch.is_autocast_cpu_enabled() if device == "cpu" else torch.is_autocast_enabled())


def identifier(name: str) -> str:
    """Return a name that a line to paste may hold and a portal takes; empty for any other name."""
    return name if name.isascii() and name.isidentifier() and len(name) <= LONGEST_NAME else ""


def names_held(torch: Any, met: list[Any]) -> list[str]:
    """Return each module's name within another module, as the script wrote it; empty for a module without one."""
    modules = read.objects_of(torch.nn.Module)
    parts = [part for each in modules for part in vars(each).get("_modules", {}).items()]
    names = {id(part): name for name, part in parts if part is not None}
    return [identifier(names.get(id(reference()), "")) for reference in met]


def configs_with_cache(module: Any) -> list[tuple[str, Any]]:
    """Return each config that asks for a decoder's cache, with its module's path; empty if no line can name it."""
    found: dict[int, tuple[str, Any]] = {}
    for path, part in module.named_modules():
        config = getattr(part, "config", None)
        if getattr(config, "use_cache", False) is True and id(config) not in found:
            names = list(dropwhile(lambda name: name in WRAPPERS, filter(None, path.split("."))))
            found[id(config)] = ".".join(names) if all(map(identifier, names)) else "", config
    return list(found.values())
