"""Counts the failures that Python code of a training was given, as one of memory that it catches.

A card's allocator counts every allocation that it refused. Of those torch catches some itself, as where cuDNN asks for
less memory then: no Python code learns of these, and the training is the same as without them.
"""

from __future__ import annotations

from functools import wraps
from typing import Any


class Raised:
    """`count` is how many there were so far; None where this torch has no class for an out-of-memory error."""

    def __init__(self, torch: Any) -> None:
        kind = getattr(torch, "OutOfMemoryError", None) or getattr(torch.cuda, "OutOfMemoryError", None)
        self.count: Any = None if kind is None else 0
        if kind is None:
            return
        make, go_back = kind.__init__, torch.autograd.backward

        def made(error: Any, *details: Any, **options: Any) -> None:
            self.failed()
            make(error, *details, **options)

        @wraps(go_back)
        def went_back(*arguments: Any, **options: Any) -> None:
            try:
                go_back(*arguments, **options)
            except RuntimeError:
                self.failed()
                raise

        kind.__init__ = made  # one made in C++ calls it, too, when Python code catches it
        torch.autograd.backward = went_back  # a scripted function gives a plain RuntimeError

    def failed(self) -> None:
        """Count a failure: also any that a forward pass ends with, as a scripted one gives a plain RuntimeError."""
        if self.count is not None:
            self.count += 1
