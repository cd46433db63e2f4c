"""Strict reading of a query string: what is not understood is refused, by its parameter's name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

LARGEST_ID = 2**63 - 1


class BadQuery(Exception):
    """An address that cannot be answered: which parameter, and what would be right."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(f"{parameter}: {message}")
        self.parameter = parameter
        self.message = message


class Query(Protocol):
    """What is used of Django's QueryDict."""

    def __iter__(self) -> Iterator[str]: ...
    def get(self, key: str, default: Any = None, /) -> Any: ...
    def getlist(self, key: str) -> list[str]: ...


def refuse_unknown(query: Query, allowed: tuple[str, ...]) -> None:
    for name in query:
        if name not in allowed:
            raise BadQuery(str(name)[:40], f"is not a parameter here; there are {', '.join(allowed)}")


def is_row_id(word: str) -> bool:
    """Whether a row of a table can have this number: from 1 to what a column of 64 bits holds."""
    return word.isascii() and word.isdecimal() and len(word) < 20 and 0 < int(word) <= LARGEST_ID


def one_of(query: Query, name: str, allowed: tuple[str, ...], default: str) -> str:
    word = query.get(name) or default
    if word not in allowed:
        raise BadQuery(name, f"{word[:40]!r} is not one of {', '.join(allowed)}")
    return word


def required_text(query: Query, name: str) -> str:
    word = (query.get(name) or "").strip()
    if not word:
        raise BadQuery(name, "is needed")
    return word


def flag(query: Query, name: str) -> bool:
    return one_of(query, name, ("0", "1"), "0") == "1"


def count(query: Query, name: str) -> int | None:
    word = query.get(name)
    if not word:
        return None
    if not is_row_id(word):
        raise BadQuery(name, f"{word[:40]!r} is not a whole number above 0")
    return int(word)
