"""JSON of another process or an earlier day -> the engine's dataclasses; members unknown here are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def from_json(kind: type[T], data: Any, read_other: Callable[[type, Any], Any] | None = None) -> T:
    """Make a `kind` of JSON values, by `read_other` of types JSON lacks. Raises ValueError, naming the member."""
    import msgspec  # here: `python -m engine --help` need not wait for it

    return msgspec.convert(data, kind, dec_hook=read_other)


def to_json(value: Any) -> Any:
    """Return a value as JSON has it: lists, and the values of enums."""
    import msgspec

    return msgspec.json.decode(msgspec.json.encode(value))
