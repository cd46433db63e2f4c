"""JSON of another process, or of an earlier day -> the engine's dataclasses, by their annotations.

Members that this version does not know are left out: a later one may have written more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def from_json(kind: type[T], data: Any, read_other: Callable[[type, Any], Any] | None = None) -> T:
    """Make a `kind` of JSON values. Raises ValueError, which names the member that is missing or of another type.

    `read_other` is called with the type and the value of a member that JSON has no type for.
    """
    import msgspec  # here: `python -m engine --help` need not wait for it

    return msgspec.convert(data, kind, dec_hook=read_other)


def to_json(value: Any) -> Any:
    """Return a value as JSON has it: lists, and the values of enums."""
    import msgspec

    return msgspec.json.decode(msgspec.json.encode(value))
