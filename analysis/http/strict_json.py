"""Untrusted JSON -> values that can be stored. Stricter than the standard library, which accepts more than JSON."""

from __future__ import annotations

import json
from typing import Any, NoReturn

_DEPTH_MAX = 32
"""Valid requests nest only a few levels."""


class BadJsonError(ValueError):
    """The text is not acceptable JSON; the message states why."""


def strict_json(body: bytes, *, any_text: bool = False) -> Any:
    """Read RFC 8259. Raises BadJsonError for other text, duplicate keys and, without `any_text`, unstorable text."""
    try:
        value = json.loads(
            body.decode(), object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite, parse_int=_bounded
        )
    except BadJsonError:
        raise
    except UnicodeDecodeError as exc:
        raise BadJsonError("The body must be UTF-8.") from exc
    except (ValueError, RecursionError) as exc:
        raise BadJsonError("The body must be valid JSON.") from exc
    _check(value, 0, any_text)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise BadJsonError(f"The key “{_shown(key)}” is given twice.")
        found[key] = value
    return found


def _no_constant(word: str) -> NoReturn:
    raise BadJsonError(f"{word} is not a JSON number.")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise BadJsonError("A number is too large.")
    return value


def _bounded(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:  # the largest value of a 64-bit column
        raise BadJsonError("A number is too large.")
    return int(text)


def _check(value: Any, depth: int, any_text: bool) -> None:
    if depth > _DEPTH_MAX:
        raise BadJsonError(f"The body nests deeper than {_DEPTH_MAX} levels.")
    if isinstance(value, str):
        _check_text(value, any_text)
    elif isinstance(value, list):
        for part in value:
            _check(part, depth + 1, any_text)
    elif isinstance(value, dict):
        for key, part in value.items():
            _check_text(key, any_text)
            _check(part, depth + 1, any_text)


def _check_text(text: str, any_text: bool) -> None:
    """Refuse NUL, which PostgreSQL cannot store, and lone surrogates, which are not characters."""
    if not any_text and ("\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text)):
        raise BadJsonError(f"The text “{_shown(text)}” contains a character that cannot be stored.")


def _shown(text: str) -> str:
    return text[:40].encode("ascii", "backslashreplace").decode().replace("\x00", "\\x00")
