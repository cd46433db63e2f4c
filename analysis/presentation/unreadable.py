"""What is stored and cannot be read: said on the page in its place, instead of an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from engine.questions.documents.stored import MALFORMED

T = TypeVar("T")


class UnreadableError(ValueError):
    """A stored document is not of the form that its readers know."""

    def __init__(self, cause: object) -> None:
        super().__init__(f"result cannot be read: {cause}"[:300])


def read_stored(read: Callable[[Any], T], stored: Any) -> T:
    """Read a stored document, or a part of one. Raises UnreadableError."""
    try:
        return read(stored or {})
    except MALFORMED as exc:
        raise UnreadableError(repr(exc)) from exc


def read_or_none(read: Callable[[Any], T], stored: Any) -> T | None:
    """Read a part that pages can do without; None where it is missing or cannot be read."""
    try:
        return read_stored(read, stored) if stored else None
    except UnreadableError:
        return None
