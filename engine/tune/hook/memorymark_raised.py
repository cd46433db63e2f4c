"""Counts the failures given to Python code of a training, as one of memory that it catches.

A card's allocator also counts those that torch catches, as where cuDNN asks for less then: they change no training.
"""

from __future__ import annotations

from functools import wraps
from typing import Any


class Raised:
    """`count` is how many there were so far; None where this torch has no class for an out-of-memory error."""

    def __init__(self, torch: Any, go_back: Any = lambda: None) -> None:
        kind = getattr(torch, "OutOfMemoryError", None) or getattr(torch.cuda, "OutOfMemoryError", None)
        self.count: Any = None if kind is None else 0
        if kind is None:
            return
        make = kind.__init__

        def made(error: Any, *details: Any, **options: Any) -> None:
            self.failed()
            make(error, *details, **options)

        kind.__init__ = made  # one made in C++ calls it, too, when Python code catches it
        torch.autograd.backward = self.followed(torch.autograd.backward, go_back)
        scripted = torch._C.ScriptFunction  # its failures, and those of its backward pass, are plain RuntimeErrors
        scripted.__call__ = self.followed(scripted.__call__)

    def followed(self, function: Any, begin: Any = lambda: None) -> Any:

        @wraps(function)
        def called(*arguments: Any, **options: Any) -> Any:
            begin()
            try:
                return function(*arguments, **options)
            except RuntimeError:
                self.failed()
                raise

        return called

    def failed(self) -> None:
        if self.count is not None:
            self.count += 1
