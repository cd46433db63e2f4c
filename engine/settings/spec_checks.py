"""Checks the fields of every spec against their declarations, and reads them from JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, get_args, get_type_hints

from ..errors import SpecError
from ..text.units import BYTES_ALLOWED, parse_bytes, round_bytes
from .setting import Setting, TextValues

_MOST_LISTED = 15
"""Longer lists of choices are not written into an error."""
_MISTYPED = 0.85
"""How alike a text and a choice are, from 0 to 1, where the choice was meant."""
_AS_ALIKE = 0.15
"""How much less alike than the nearest a further suggestion may be."""
_TYPE_LABELS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


class ValueType(NamedTuple):
    """The type of a field's value: str, bool, int or float, and whether it may be None."""

    kind: type
    is_optional: bool


@cache
def value_types(spec_class: type) -> dict[str, ValueType]:
    hints = get_type_hints(spec_class)
    found = {}
    for name in settings_of(spec_class):
        parts = get_args(hints[name]) or (hints[name],)
        found[name] = ValueType(next(kind for kind in parts if kind is not NoneType), NoneType in parts)
    return found


@cache
def settings_of(spec_class: type) -> dict[str, Setting]:
    return {each.name: each.metadata["setting"] for each in fields(spec_class) if "setting" in each.metadata}


def check_settings(spec: Any) -> None:
    """Raise SpecError for the first setting that is of a wrong type, not offered, or out of range."""
    spec_class: type = type(spec)
    settings, types = settings_of(spec_class), value_types(spec_class)
    for name, each in settings.items():
        value = getattr(spec, name)
        _check_type(name, value, types[name])
        is_offered = not each.choices or value in each.choices or (name == "model" and spec.config)
        if not is_offered and not (each.text_values and _is_written_well(value, each)):
            raise SpecError(name, not_offered(value, tuple(each.choices or ()), each.text_values))
    for name, each in settings.items():
        value, (low, high) = getattr(spec, name), each.bounds or (-math.inf, math.inf)
        if each.bounds and value is not None and not low <= value <= high:  # refuses NaN and the infinities too
            raise SpecError(name, out_of_range(value, low, high, is_bytes=is_of_bytes(name)))


def _is_written_well(value: str, of: Setting) -> bool:
    """Whether a text is allowed beside a setting's choices, and is no mistyped choice."""
    assert of.text_values is not None
    is_mistyped = bool(get_close_matches(value, of.choices or (), cutoff=_MISTYPED)) and "," not in value
    return of.text_values.has(value) and not is_mistyped


def not_offered(value: str, offered: Sequence[str], texts: TextValues | None = None) -> str:
    nearest = _nearest(value.strip().lower(), offered)
    names = ", ".join(filter(None, offered)) if len(offered) <= _MOST_LISTED else ""
    if texts is not None:
        names += f", or {texts.allowed}, at most {texts.max_length} characters"
    if nearest:
        advice = f"did you mean {' or '.join(nearest)}?" + (f" Offered: {names}" if names else "")
    else:
        advice = f"one of {names}" if names else f"one of {len(offered)}, such as {', '.join(offered[:3])}"
    return f"{value[:80]!r} is not offered; {advice}"


def unknown_key(key: str, names: Sequence[str]) -> str:
    nearest = _nearest(key[:80], names)
    advice = f"did you mean {' or '.join(nearest)}?" if nearest else f"allowed are {', '.join(names)}"
    return f"unknown key; {advice}"


def _nearest(typed: str, offered: Sequence[str]) -> list[str]:
    found = get_close_matches(typed, offered)
    alike = [SequenceMatcher(None, each, typed).ratio() for each in found]  # as get_close_matches compares
    return [each for each, ratio in zip(found, alike, strict=True) if ratio >= alike[0] - _AS_ALIKE]


def out_of_range(value: float, low: float, high: float, *, is_bytes: bool = False) -> str:
    """Write ``5.0 is out of range; from 0 to 0.5; 5 % is 0.05``, and bytes as sizes."""
    if is_bytes:
        return f"{round_bytes(value)} is out of range; from {round_bytes(low)} to {round_bytes(high)}"
    meant = f"; {value:g} % is {value / 100:g}" if high <= 1 < value <= 100 * high else ""
    return f"{str(value)[:40]} is out of range; from {_bound(low)} to {_bound(high)}{meant}"


def _bound(value: float) -> str:
    """Write a bound with all its digits: 1,048,576 or 0.5."""
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _check_type(name: str, value: object, allowed: ValueType) -> None:
    kind = allowed.kind
    if value is None and allowed.is_optional:
        return
    is_wrong_bool = isinstance(value, bool) and kind is not bool
    if is_wrong_bool or not isinstance(value, (int, float) if kind is float else kind):
        raise SpecError(name, f"must be {BYTES_ALLOWED if is_of_bytes(name) else _TYPE_LABELS[kind]}")


def given_fields(spec_class: type, data: object) -> dict[str, Any]:
    """Return the fields that JSON or options give, bytes also as "24GiB". Raises SpecError, also for an unknown key."""
    if not isinstance(data, dict):
        raise SpecError("spec", "must be a JSON object")
    names = [each.name for each in fields(spec_class)]
    for key in data:
        if key not in names:
            raise SpecError(str(key)[:80], unknown_key(str(key), names))
    given = dict(data)
    if isinstance(text := data.get("reserve_fraction"), str):
        del given["reserve_fraction"]
        given |= _reserve_setting(text)
    texts = {name: value for name, value in given.items() if is_of_bytes(name) and isinstance(value, str)}
    return {**given, **{name: bytes_setting(name, text) for name, text in texts.items()}}


def _reserve_setting(text: str) -> dict[str, float | int]:
    """Read "0.1" as a share, and "10GiB" as bytes. Raises SpecError for anything else."""
    try:
        return {"reserve_bytes": parse_bytes(text)} if text[-1:].isalpha() else {"reserve_fraction": float(text)}
    except ValueError:
        allowed = "neither a share such as 0.1 nor a size with its unit such as 10GiB"
        raise SpecError("reserve_fraction", f"{text[:80]!r} is {allowed}") from None


def is_of_bytes(name: str) -> bool:
    """Whether a setting's value is bytes, which people may write as "24GiB"."""
    return name.endswith("_bytes")


def bytes_setting(name: str, text: str) -> int:
    """Parse a memory limit or another size. Raises SpecError, which names the field."""
    try:
        return parse_bytes(text)
    except ValueError as exc:
        raise SpecError(name, str(exc)) from exc


def numbers_setting(name: str, text: str, such_as: str) -> tuple[int, ...]:
    """Parse a list such as "0,1,7". Raises SpecError, which names the field and shows a right list."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise SpecError(name, f"{text[:80]!r} is no list of whole numbers, such as {such_as}") from None
