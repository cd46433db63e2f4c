"""What is stored and cannot be read: said on the page in its place, instead of an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class UnreadableError(ValueError):
    """A stored document is not of the form that its readers know. `part` names it, as the document does."""

    def __init__(self, part: str, cause: object) -> None:
        super().__init__(f"{part} cannot be read: {cause}"[:300])
        self.part = part


def read_stored(read: Callable[[Any], T], stored: Any, part: str = "result") -> T:
    """Read a stored document, or a part of one. Raises UnreadableError.

    A reader of JSON takes it apart before it knows what it is: all these are of the document, never of the reader.
    """
    try:
        return read(stored or {})
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as exc:
        raise UnreadableError(part, repr(exc)) from exc


def read_or_none(read: Callable[[Any], T], stored: Any) -> T | None:
    """Read a part that pages can do without: None where there is none, or where it cannot be read."""
    try:
        return read_stored(read, stored) if stored else None
    except UnreadableError:
        return None
