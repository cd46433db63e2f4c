"""Reads the facts of a document: bounded in size, of the engine's own types. Members that are no facts are ignored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from ...errors import SpecError
from ..documents.stored import read_strictly

MOST_VALUES, MOST_DEPTH, MOST_TEXT, MOST_MEMBERS, MOST_NAME = 300_000, 24, 20_000, 500, 200
MOST_PROBES, MOST_CHECKS = 500, 16
MOST_ROUNDS, MOST_SIZES, MOST_BLOCKS = 256, 64, 1_024
"""Limits of a comparison of speeds, which bound the cost of a document. No run comes near: a block takes at least
0.2 s, and all rounds beyond the fewest 60 s."""
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
"""The first version of the engine whose results hold all facts: run key, host, rounds of timing."""

T = TypeVar("T")


def check_limits(document: Any) -> None:
    """Raise SpecError for too many or too long values, bad numbers, or nesting, which may be deeper than the stack."""
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
            if len(value) > MOST_MEMBERS:
                raise SpecError(path[:200], f"has more than {MOST_MEMBERS} members")
            for key, member in value.items():
                if not isinstance(key, str) or len(key) > MOST_NAME:
                    raise SpecError(path[:200], f"has a member whose name is no text of at most {MOST_NAME} characters")
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


def read_facts(kind: type[T], document: Any) -> T:
    """Read the members of `kind`. Raises SpecError, which names a member that is missing or of another type."""
    made = read_strictly(kind, document)
    for name, most in _MOST.items():
        if len(getattr(made, name, ())) > most:
            raise SpecError(name, f"has more than {most:,} members")
    return made
