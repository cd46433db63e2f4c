"""PURE: JSON Schema of the settings of a spec: types and defaults by its class, all else by their declaration."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.settings.setting import Setting
from engine.settings.spec_checks import is_of_bytes, settings_of
from engine.settings.workload_settings import DEVICE_NAMES

Schema = dict[str, Any]

_UNITS = {"_bytes": "bytes", "_seconds": "seconds", "_usd": "US dollars", "_batch_size": "samples"}
_BY_NAME: dict[str, Schema] = {
    "device": {"pattern": f"^(?:{DEVICE_NAMES.pattern})$"},
    "config": {"type": ["object", "string", "null"]},
}


def properties_of(spec_class: type) -> dict[str, Schema]:
    found = msgspec.json.schema_components([spec_class])[1][spec_class.__name__]["properties"]
    return {name: _property(name, found[name], each) for name, each in settings_of(spec_class).items()}


def _property(name: str, typed: Schema, declared: Setting) -> Schema:
    either = typed.pop("anyOf", None)  # a type, or null
    schema = {**either[0], "type": [each["type"] for each in either], **typed} if either else typed
    if (texts := declared.text_values) is not None:
        examples = list(declared.choices or ())
        schema |= {"pattern": declared.pattern, "maxLength": texts.max_length, "examples": examples}
    elif declared.choices:
        schema["enum"] = list(declared.choices)
    if declared.bounds:
        schema["minimum"], schema["maximum"] = declared.bounds
    if is_of_bytes(name):
        schema["type"] = ["integer", "string", "null"]
    unit = next(({"x-unit": unit} for ending, unit in _UNITS.items() if name.endswith(ending)), {})
    return schema | _BY_NAME.get(name, {}) | {"description": declared.description} | unit
