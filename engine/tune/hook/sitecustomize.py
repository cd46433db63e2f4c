"""Starts the watch over a training that MemoryMark measures. Without MEMORYMARK_HOOK in the environment it is inert.

Python imports this file at its start because its folder is on PYTHONPATH. A file of the same name that the user has is
run as ever. The watch itself is `memorymark_watch.py` beside this file; it begins when torch has been imported.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from functools import partial
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function with the module of a name once it has been imported."""

    def __init__(self, actions: Any) -> None:
        self.actions = actions

    def find_spec(self, name: Any, path: Any, target: Any = None) -> Any:
        if (action := self.actions.pop(name, None)) is None:
            return None
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec = next((found for finder in others if (found := finder.find_spec(name, path, target))), None)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module
            loader.exec_module = lambda module: (execute(module), action(module))
        return spec


def batch_size_goes_to_loaders(watched: Any, torch: Any) -> None:
    """Have each DataLoader that is given a batch size use the one to be tried."""
    make = torch.utils.data.DataLoader.__init__

    def made(loader: Any, dataset: Any, batch_size: Any = 1, *others: Any, **options: Any) -> None:
        if batch_size is not None and options.get("batch_sampler") is None:
            watched.mark("batch_size_set", "DataLoader", batch_size)
            batch_size = watched.settings["batch_size"]
        make(loader, dataset, batch_size, *others, **options)

    torch.utils.data.DataLoader.__init__ = made


def batch_size_goes_to_arguments(watched: Any, module: Any) -> None:
    """Have the arguments of a Hugging Face Trainer hold the batch size to be tried."""
    check = module.TrainingArguments.__post_init__

    def checked(arguments: Any) -> None:
        watched.mark("batch_size_set", "TrainingArguments", arguments.per_device_train_batch_size)
        arguments.per_device_train_batch_size = watched.settings["batch_size"]
        arguments.auto_find_batch_size = False
        check(arguments)

    module.TrainingArguments.__post_init__ = checked


def run_the_users_own() -> None:
    """Run the `sitecustomize` that would have been imported if this one were not in its way."""
    elsewhere = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def watch() -> None:
    from memorymark_watch import Watch

    watched = Watch(json.loads(os.environ["MEMORYMARK_HOOK"]))

    def arm(torch: Any) -> None:
        watched.arm(torch)
        if watched.settings["batch"] == "dataloader":
            batch_size_goes_to_loaders(watched, torch)

    actions = {"torch": arm}
    if watched.settings["batch"] == "hf":
        actions["transformers.training_args"] = partial(batch_size_goes_to_arguments, watched)
    sys.meta_path.insert(0, AfterImport(actions))


if os.environ.get("MEMORYMARK_HOOK"):
    watch()
run_the_users_own()
