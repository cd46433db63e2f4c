"""Counts the out-of-memory errors that Python code of a training was given.

A card's allocator counts every allocation that it refused. Of those torch catches some itself, as where cuDNN asks for
less memory then: no Python code learns of these, and the training is the same as without them.
"""

from __future__ import annotations

from typing import Any


class Raised:
    """`count` is how many were made so far; None where this torch has no class for them."""

    def __init__(self, torch: Any) -> None:
        kind = getattr(torch, "OutOfMemoryError", None) or getattr(torch.cuda, "OutOfMemoryError", None)
        self.count: Any = None if kind is None else 0
        if kind is None:
            return
        make = kind.__init__

        def made(error: Any, *details: Any, **options: Any) -> None:
            self.count += 1
            make(error, *details, **options)

        kind.__init__ = made  # one made in C++ calls it, too, when Python code catches it
