"""Calls a function with a module once its code has been run: a look-up (`importlib.util.find_spec`) is no import."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any

MODULE_BODY = "<module>"


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls `actions[name]` with each module whose code has been run, also on a reload; `begins` before the run."""

    def __init__(self, actions: Any, begins: Any = lambda _: None) -> None:
        self.actions, self.begins = actions, begins
        self.unseen = set(actions)
        self.running: list[str] = []

    def find_spec(self, name: Any, path: Any, target: Any = None) -> Any:
        self.catch_up()
        if name not in self.actions or self not in sys.meta_path:
            return None
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :]
        finds = (finder.find_spec for finder in behind if hasattr(finder, "find_spec"))
        spec = next((found for find in finds if (found := find(name, path, target)) is not None), None)
        if spec is not None:
            self.follow(spec.loader)
        return spec

    def follow(self, loader: Any) -> None:
        """Make a loader, which stays the same object, report what it runs; others are left to `catch_up`."""
        if type(loader) is importlib.util.LazyLoader:
            loader = vars(loader)["loader"]
        execute = getattr(loader, "exec_module", None)
        if execute is not None and not isinstance(loader, type) and not isinstance(execute, Execution):
            with suppress(AttributeError, TypeError):
                loader.exec_module = Execution(self, execute)

    def catch_up(self) -> None:
        """Act on modules that ran unobserved: before this finder was installed, or found by an earlier finder."""
        for name in [each for each in self.unseen if each in sys.modules and each not in self.running]:
            module = sys.modules[name]
            if type(module) is ModuleType and not is_being_run(module):  # a lazy module has another class before
                self.act(name, module)

    def act(self, name: str, module: Any) -> None:
        self.unseen.discard(name)
        self.actions[name](module)


class Execution:
    """A loader's `exec_module`, and the actions after it. A shared loader runs other modules with it, too."""

    def __init__(self, finder: AfterImport, execute: Any) -> None:
        self.finder, self.execute = finder, execute

    def __call__(self, module: Any) -> None:
        name = module.__name__
        if name not in self.finder.actions:
            self.execute(module)
            return
        self.finder.running.append(name)
        try:
            self.finder.begins(name)
            self.execute(module)
            self.finder.act(name, module)
        finally:
            self.finder.running.remove(name)


def is_being_run(module: Any) -> bool:
    for thread_frame in sys._current_frames().values():
        frame: Any = thread_frame
        while frame is not None:
            if frame.f_globals is vars(module) and frame.f_code.co_name == MODULE_BODY:
                return True
            frame = frame.f_back
    return False
