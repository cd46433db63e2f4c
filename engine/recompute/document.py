"""Reads a document strictly: bounded in size, without unknown members, of the engine's own types."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeVar

from ..documents.stored import read_strictly
from ..errors import SpecError
from .contradiction import Contradiction, is_same

MOST_VALUES, MOST_DEPTH, MOST_TEXT = 300_000, 24, 20_000
MOST_PROBES, MOST_CHECKS = 500, 16
MOST_ROUNDS, MOST_SIZES, MOST_BLOCKS = 256, 64, 1_024
"""Limits of a comparison of speeds. Each round is decided again from those before it, so these bound the cost of a
document. No run comes near: a block takes at least 0.2 s, and all rounds beyond the fewest 60 s."""
MOST_ENTRIES = 64
"""Changes of a race, and combinations of them: a race has three generations of at most a dozen."""
_MOST = {
    **{"probes": MOST_PROBES, "speed_rounds": MOST_ROUNDS, "checks": MOST_CHECKS},
    **{"rounds": MOST_ROUNDS, "rounds_of_sizes": MOST_ROUNDS, "rounds_of_workers": MOST_ROUNDS},
    **{"rows": MOST_ENTRIES, "sizes": MOST_ENTRIES},
}
MOST_INTEGER = 2**63 - 1
MOST_SECONDS = 1e9

FIRST_VERSION = "0.5.0"
"""The first version of the engine whose results hold all that is computed again: run key, host, rounds of timing."""

NO_LONGER_READ = ("training.rank_hosts",)
"""Members that earlier versions wrote, and nothing shows."""


class Document(Protocol):
    """What was read of a document, or of a part of it."""

    def to_dict(self) -> dict[str, Any]: ...


D = TypeVar("D", bound=Document)


def check_limits(document: Any) -> None:
    """Raise SpecError for what no result contains: too many or too long values, deep nesting, bad numbers.

    Iterative, because a document may be deeper than Python's stack.
    """
    if not isinstance(document, Mapping):
        raise SpecError("result", "must be a JSON object")
    waiting: list[tuple[str, str, Any, int]] = [("result", "result", document, 0)]
    values = 0
    while waiting:
        path, name, value, depth = waiting.pop()
        values += 1
        if values > MOST_VALUES:
            raise SpecError("result", f"holds more than {MOST_VALUES:,} values")
        if depth > MOST_DEPTH:
            raise SpecError(path[:200], f"is deeper than {MOST_DEPTH} levels")
        if isinstance(value, Mapping):
            for key, member in value.items():
                if not isinstance(key, str) or len(key) > MOST_TEXT:
                    raise SpecError(path[:200], "has a member whose name is no text of usual length")
                waiting.append((key if path == "result" else f"{path}.{key}", key, member, depth + 1))
        elif isinstance(value, (list, tuple)):
            waiting += [(f"{path}[{place}]", name, member, depth + 1) for place, member in enumerate(value)]
        else:
            _check_value(path[:200], name, value)


def _check_value(path: str, name: str, value: Any) -> None:
    if isinstance(value, str):
        if len(value) > MOST_TEXT:
            raise SpecError(path, f"is longer than {MOST_TEXT:,} characters")
        return
    if value is None or isinstance(value, bool):
        return
    if not isinstance(value, (int, float)):
        raise SpecError(path, "is no JSON value")
    if isinstance(value, int) and abs(value) > MOST_INTEGER or not math.isfinite(value):
        raise SpecError(path, "is no finite number of at most 63 bits")
    if name.endswith(("_bytes", "seconds")) and value < 0:
        raise SpecError(path, f"{value} is negative")
    if name.endswith("seconds") and value > MOST_SECONDS:
        raise SpecError(path, f"{value:g} is longer than any run")


def read_claims(kind: type[D], document: Any, path: str = "") -> tuple[D, list[Contradiction]]:
    """Read a document, or its part at `path`, and list what it says otherwise than the members that this follows from.

    Raises SpecError, which names a member that is missing, of another type, or unknown: what an unknown one claims
    could not be recomputed.
    """
    made = read_strictly(kind, document, path)
    for name, most in _MOST.items():
        if len(getattr(made, name, ())) > most:
            raise SpecError(name, f"has more than {most:,} members")
    return made, [*_untrue_members(document, made.to_dict(), path)]


def _untrue_members(given: Any, read: Any, path: str) -> Iterator[Contradiction]:
    """Yield what differs from what was read. What a document gives is read unchanged, but for what follows from it."""
    if isinstance(given, Mapping) and isinstance(read, Mapping):
        for name, value in given.items():
            member = f"{path}.{name}" if path else name
            if member in NO_LONGER_READ:
                continue
            if name not in read:
                raise SpecError(member[:200], "is unknown")
            yield from _untrue_members(value, read[name], member)
    elif isinstance(given, (list, tuple)) and isinstance(read, (list, tuple)) and len(given) == len(read):
        for place, (one, other) in enumerate(zip(given, read, strict=True)):
            yield from _untrue_members(one, other, f"{path}[{place}]")
    elif not is_same(given, read):
        yield Contradiction(path, given, read)
