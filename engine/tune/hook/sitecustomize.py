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


def run_the_users_own() -> None:
    """Run the `sitecustomize` that would have been imported if this one were not in its way."""
    elsewhere = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def watch() -> None:
    import memorymark_watch

    watched = memorymark_watch.begin(json.loads(os.environ["MEMORYMARK_HOOK"]))
    way = watched.settings["batch"]
    if way == "function":
        return  # `memorymark_step.py` begins when the function's module has been imported

    def batch() -> Any:
        return importlib.import_module("memorymark_batch")

    def arm(torch: Any) -> None:
        watched.arm(torch)
        if way == "dataloader":
            batch().goes_to_loaders(watched, torch)

    if way == "steps":
        batch()  # `memorymark.steps` looks whether it is there
    actions = {"torch": arm, "transformers.training_args": lambda module: batch().goes_to_arguments(watched, module)}
    sys.meta_path.insert(0, AfterImport(actions))


if os.environ.get("MEMORYMARK_HOOK"):
    watch()
run_the_users_own()
