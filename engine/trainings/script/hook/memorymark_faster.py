"""Sets something of a training from outside, as `tune --faster` tries it, and notes what could be set and its losses.

What is set is what a line of the script would set. A value that the script sets afterwards stands: see `applied`.
"""

from __future__ import annotations

import gc
import inspect
import os
import random
import sys
from functools import partial
from typing import Any

import memorymark_read as read
from memorymark_models import Models
from memorymark_patches import wrap

LOSSES, LOOKED = 64, 8
"""Steps whose losses are noted, and batches looked at for random numbers."""
EXPANDABLE = "expandable_segments:True"
FRAMEWORKS = ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer", "transformers.trainer")
FABRICS = ("lightning.fabric.wrappers", "lightning_fabric.wrappers")


class Faster:
    """What one start sets: `settings["set"]` by name, the same names as in `script/faster/variants.py`."""

    def __init__(self, watched: Any, torch: Any) -> None:
        self.watched, self.torch, self.settings = watched, torch, watched.settings["faster"]
        self.wanted, self.applied = self.settings["set"], set[str]()
        self.models = Models(self)
        self.losses, self.draws = Losses(self), Draws(torch)
        self.fused, self.foreach = (tuple(_optimizers_with(torch, name)) for name in ("fused", "foreach"))

    def follow(self) -> None:
        """Set all that is set from outside."""
        torch = self.torch
        self.seed(self.settings["seed"])
        if "tf32" in self.wanted:
            torch.set_float32_matmul_precision("high")
            torch.backends.cudnn.allow_tf32 = True
        if "cudnn-benchmark" in self.wanted:
            torch.backends.cudnn.benchmark = True
        wrap(torch.autograd, "backward", self.losses.went_back)
        wrap(getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler), "update", self.losses.updated)
        if {"workers", "pinned"} & self.wanted.keys():
            self.watched.loaders.change(self.set_loaders)
        wrap(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", self.draws.drawn)
        for name, kinds in (("fused", self.fused), ("foreach", self.foreach)):
            for kind in kinds if name in self.wanted else ():
                wrap(kind, "__init__", partial(self.made_optimizer, name, inspect.signature(kind.__init__)))
        self.models.follow()

    def seed(self, seed: int) -> None:
        """Seed the generators left unseeded by a script, so that all starts get the same batches."""
        self.torch.manual_seed(seed)
        random.seed(seed)
        if (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed(seed)

    def set_loaders(self, _: Any, kind: Any) -> None:
        """Give each loader of a class pinned memory, and workers where rows come by number, or each would have all."""
        data, wanted, signature = self.torch.utils.data, self.wanted, inspect.signature(kind.__init__)

        def made(make: Any, *arguments: Any, **options: Any) -> None:
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

        wrap(kind, "__init__", made)

    def made_optimizer(self, name: str, signature: Any, make: Any, *arguments: Any, **options: Any) -> None:
        if not _takes(type(arguments[0]), name):  # a class of the script's own, which no line can give it to
            make(*arguments, **options)
            return
        other = "foreach" if name == "fused" else "fused"
        given = signature.bind(*arguments, **options)
        given.arguments[name] = True
        if other in signature.parameters:
            given.arguments[other] = None
        make(*given.args, **given.kwargs)
        self.applied.add(name)

    def seen(self) -> dict[str, Any]:
        torch = self.torch
        precision = matmul_precision(torch)
        if precision == "high":
            self.applied.add("tf32")
        if torch.backends.cudnn.benchmark:
            self.applied.add("cudnn-benchmark")
        made = [each for each in read._optimizers(torch) if id(each) in self.watched.steps.optimizers]
        return {
            "applied": sorted(self.applied & self.wanted.keys()),
            "losses": [float(total / count) for total, count in self.losses.totals.values()],
            "loaders": [[*key, count] for key, count in self.draws.loaders.items()],
            "draws_random": self.draws.are_random,
            "models": self.models.seen(),
            "kept_bytes": self.models.outputs.kept_bytes,
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


class Losses:
    """The losses of the first steps: of each their sum and number. A backward pass within another one has none."""

    def __init__(self, faster: Any) -> None:
        self.torch, self.steps, self.outputs = faster.torch, faster.watched.steps, faster.models.outputs
        self.totals: dict[int, tuple[Any, int]] = {}
        self.updates = 0  # of a GradScaler
        self.is_going_back = False

    def went_back(self, go_back: Any, tensors: Any, *others: Any, **options: Any) -> None:
        if self.is_going_back:  # a checkpoint runs its modules again in the backward pass
            go_back(tensors, *others, **options)
            return
        if self.torch.is_tensor(tensors) and tensors.numel() == 1 and not tensors.is_meta:
            self.note(tensors)
        self.is_going_back = True
        try:
            go_back(tensors, *others, **options)
        finally:
            self.is_going_back = False
        self.outputs.gone_back()

    def updated(self, update: Any, *arguments: Any, **options: Any) -> None:
        self.updates += 1  # after every step, also one that it left out, which a fused optimizer leaves out inside
        update(*arguments, **options)

    def note(self, loss: Any) -> None:
        """Add a loss to those of its optimizer step, which may have many; a card is not waited for until the end."""
        step = self.updates or max(self.steps.counts.values(), default=0)
        if step < LOSSES:
            kept_as = self.torch.promote_types(loss.dtype, self.torch.float32)  # a Mac's GPU has no 64 bits
            value = loss.item() if loss.device.type == "cpu" else loss.detach().to(kept_as)
            total, count = self.totals.get(step, (0.0, 0))
            self.totals[step] = total + value, count + 1


class Draws:
    """With what each batch of the training is loaded, and whether its rows draw random numbers."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.looked, self.are_random = torch, 0, False
        self.loaders: dict[Any, int] = {}

    def drawn(self, draw: Any, iterator: Any) -> Any:
        is_looked_at = self.looked < LOOKED and iterator._num_workers == 0 and iterator._num_yielded > 0
        before = self.random_states() if is_looked_at else None
        batch = draw(iterator)
        if before is not None:
            self.looked += 1
            self.are_random |= self.random_states() != before
        if self.torch.is_grad_enabled():
            kept = bool(getattr(iterator, "_persistent_workers", False))
            key = (iterator._num_workers, bool(iterator._pin_memory), kept, iterator._dataset_kind == 0)
            self.loaders[key] = self.loaders.get(key, 0) + 1
        return batch

    def random_states(self) -> tuple[Any, ...]:
        numpy = sys.modules.get("numpy")
        of_numpy = numpy.random.get_state()[1:3] if numpy is not None else (None, None)
        of_torch = self.torch.random.get_rng_state().numpy().tobytes() if numpy is not None else None
        return random.getstate(), None if of_numpy[0] is None else of_numpy[0].tobytes(), of_numpy[1], of_torch


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
