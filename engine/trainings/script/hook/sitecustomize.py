"""Starts the watch over a training that MemoryMark measures, or the record of one that runs as it is.

Without MEMORYMARK_HOOK in the environment it is inert. Python imports it at its start, as its folder is on PYTHONPATH.
The user's own file of the same name is run, too.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sys
from typing import Any

STATEFUL = "torchdata.stateful_dataloader.stateful_dataloader"
"""Has a DataLoader that is made without torch's own `__init__`."""
HERE = os.path.dirname(os.path.abspath(__file__))


def run_the_users_own() -> None:
    elsewhere = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def record(settings: Any) -> None:
    import memorymark_imports
    import memorymark_recorder

    recorder = memorymark_recorder.Recorder(settings)
    finder = memorymark_imports.AfterImport({"torch": lambda module: recorder.arm(sys.modules.get("torch", module))})
    sys.meta_path.insert(0, finder)
    finder.catch_up()


def watch(settings: Any) -> None:
    import memorymark_ends
    import memorymark_imports
    import memorymark_watch

    watched = memorymark_watch.begin(settings)
    memorymark_ends.see_ends(watched)
    way = watched.settings["batch"]

    def batch() -> Any:
        return importlib.import_module("memorymark_batch")

    def ranks() -> Any:
        return importlib.import_module("memorymark_ranks")

    def begins(name: str) -> None:
        if name == "torch":
            watched.seen.now("importing")

    def arm(torch: Any) -> None:
        if not hasattr(torch, "nn") or watched.torch is not None:
            return  # a folder named torch, or a reload
        watched.seen.once("imported")
        if watched.settings.get("emulated"):
            ranks().stand_in(watched, torch)
        if way == "function":
            return  # `memorymark_step.py` arms when the function's module has been imported
        watched.arm(sys.modules.get("torch", torch))
        if way == "dataloader":
            watched.loaders.change(batch().goes_to_loaders)

    if way == "steps":
        batch()  # `memorymark.steps` checks whether it is loaded
    actions: dict[str, Any] = {"torch": arm, STATEFUL: lambda module: watched.loaders.see(module.StatefulDataLoader)}
    if way != "function":
        actions["transformers.training_args"] = lambda module: batch().goes_to_arguments(watched, module)
    if watched.settings.get("emulated"):
        actions |= ranks().actions(watched)
    finder = memorymark_imports.AfterImport(actions, begins)
    sys.meta_path.insert(0, finder)
    finder.catch_up()  # a .pth file may have imported torch before this file ran


if os.environ.get("MEMORYMARK_HOOK"):
    hook = json.loads(os.environ["MEMORYMARK_HOOK"])
    (record if hook.get("records") else watch)(hook)
run_the_users_own()
