"""Counts the failures given to Python code of a training, as one of memory that it catches.

A card's allocator also counts those that torch catches, as where cuDNN asks for less then: they change no training.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from memorymark_patches import wrap


class Raised:
    """`count` is how many there were so far; None where this torch has no class for an out-of-memory error."""

    def __init__(self, torch: Any, go_back: Any = lambda: None) -> None:
        kind = getattr(torch, "OutOfMemoryError", None) or getattr(torch.cuda, "OutOfMemoryError", None)
        self.count: Any = None if kind is None else 0
        if kind is None:
            return
        scripted = torch._C.ScriptFunction  # its failures, and those of its backward pass, are plain RuntimeErrors
        wrap(kind, "__init__", self.made)
        wrap(torch.autograd, "backward", partial(self.called, go_back))
        wrap(scripted, "__call__", partial(self.called, lambda: None))

    def made(self, make: Any, error: Any, *details: Any, **options: Any) -> None:
        """Count an error that was made, also in C++, where Python code catches it."""
        self.failed()
        make(error, *details, **options)

    def called(self, begin: Any, function: Any, *arguments: Any, **options: Any) -> Any:
        begin()
        try:
            return function(*arguments, **options)
        except RuntimeError:
            self.failed()
            raise

    def failed(self) -> None:
        if self.count is not None:
            self.count += 1
