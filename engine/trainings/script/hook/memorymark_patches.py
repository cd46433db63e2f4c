"""Calls functions of Python, torch and its libraries through others, so that what a training does is seen."""

from __future__ import annotations

from functools import wraps
from typing import Any


def wrap(owner: Any, name: str, around: Any) -> None:
    """Make `owner.name` call `around(function, *arguments, **options)`; nothing where there is no such function."""
    function = getattr(owner, name, None)
    if function is None:
        return

    @wraps(function)  # Lightning reads the signature of a loader to make one like it
    def wrapped(*arguments: Any, **options: Any) -> Any:
        return around(function, *arguments, **options)

    setattr(owner, name, wrapped)
