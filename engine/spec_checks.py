"""Checks the fields of a spec against what their declarations allow, and reads them from JSON.

Every kind of spec is read here: a measurement, a validation, a tuned command.
"""

from __future__ import annotations

import math
from dataclasses import fields
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, get_args, get_type_hints

from .errors import SpecError
from .setting import Setting
from .units import BYTES_ALLOWED, parse_bytes

_TYPE_LABELS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


class ValueType(NamedTuple):
    """The type of a field's value: str, bool, int or float, and whether it may be None."""

    kind: type
    is_optional: bool


@cache
def value_types(spec_class: type) -> dict[str, ValueType]:
    """Return the type of each field that is declared as a setting."""
    hints = get_type_hints(spec_class)
    found = {}
    for name in settings_of(spec_class):
        parts = get_args(hints[name]) or (hints[name],)
        found[name] = ValueType(next(kind for kind in parts if kind is not NoneType), NoneType in parts)
    return found


@cache
def settings_of(spec_class: type) -> dict[str, Setting]:
    """Return the declarations of the fields that have one."""
    return {each.name: each.metadata["setting"] for each in fields(spec_class) if "setting" in each.metadata}


def check_settings(spec: Any) -> None:
    """Raise SpecError for the first setting that is of a wrong type, not offered, or out of range."""
    spec_class: type = type(spec)
    settings, types = settings_of(spec_class), value_types(spec_class)
    for name, each in settings.items():
        value = getattr(spec, name)
        _check_type(name, value, types[name])
        is_offered = not each.choices or value in each.choices or (name == "model" and spec.config)
        if not is_offered:
            raise SpecError(name, f"{value[:80]!r} is not offered; one of {', '.join(each.choices or ())}")
    for name, each in settings.items():
        value, (low, high) = getattr(spec, name), each.bounds or (-math.inf, math.inf)
        if each.bounds and value is not None and not low <= value <= high:  # NaN and the infinities are not, either
            raise SpecError(name, f"{str(value)[:40]} is out of range; from {low:g} to {high:,.0f}")


def _check_type(name: str, value: object, allowed: ValueType) -> None:
    kind = allowed.kind
    if value is None and allowed.is_optional:
        return
    is_wrong_bool = isinstance(value, bool) and kind is not bool
    if is_wrong_bool or not isinstance(value, (int, float) if kind is float else kind):
        raise SpecError(name, f"must be {BYTES_ALLOWED if name == 'memory_limit_bytes' else _TYPE_LABELS[kind]}")


def given_fields(spec_class: type, data: object) -> dict[str, Any]:
    """Return the fields that JSON gives. `memory_limit_bytes` may be text such as "24GiB".

    Raises SpecError for what is no object, and for a key that is no field.
    """
    if not isinstance(data, dict):
        raise SpecError("spec", "must be a JSON object")
    names = [each.name for each in fields(spec_class)]
    for key in data:
        if key not in names:
            raise SpecError(str(key)[:80], f"unknown key; allowed are {', '.join(names)}")
    limit = data.get("memory_limit_bytes")
    return {**data, "memory_limit_bytes": memory_limit_bytes(limit)} if isinstance(limit, str) else dict(data)


def memory_limit_bytes(text: str) -> int:
    """`parse_bytes` whose error names the field."""
    try:
        return parse_bytes(text)
    except ValueError as exc:
        raise SpecError("memory_limit_bytes", str(exc)) from exc
