"""PURE: the members of a body that asks for a run: those of the engine's specs, and those of its place in the queue.

The JSON Schema of a member is made from its declaration as a setting and the type of its field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from analysis.models import ALL_GPUS, CPU, Run
from engine.estimate.frontier import MAX_LENGTHS
from engine.estimate.gpus import gpus
from engine.estimate.what_to_change import Scope
from engine.settings.ranks.emulation import MOST_STARTED
from engine.settings.setting import Role, Setting, setting
from engine.settings.spec_checks import check_settings, is_of_bytes, settings_of
from engine.settings.workload_settings import DEVICE_NAMES

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Queued:
    """Where and when a run starts. Raises SpecError, naming the field."""

    device_class: str = setting(
        Role.PLACE,
        "Device class",
        "Part of the GPU's name, such as A100: any device of that name will do.",
        default="",
    )
    priority: int = setting(
        Role.PLACE, "Priority", "The higher goes first; 1 is for GPU managers.", default=Run.Priority.NORMAL.value
    )
    accepts_shared_device: bool = setting(
        Role.PLACE,
        "Shared device",
        "Start although other processes use the GPU: such a run is no baseline.",
        default=False,
    )

    def __post_init__(self) -> None:
        check_settings(self)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(**{name: body[name] for name in QUEUE_KEYS if name in body})


QUEUE_KEYS = tuple(settings_of(Queued))
_UNITS = {"_bytes": "bytes", "_seconds": "seconds", "_usd": "US dollars", "_batch_size": "samples"}
_SIZE = {"type": "integer", "minimum": 1}
_BESIDE: dict[str, Callable[[], Schema]] = {
    "device": lambda: {"pattern": f"^(?:{DEVICE_NAMES.pattern})$"},
    "config": lambda: {"type": ["object", "string", "null"]},
    "device_class": lambda: {"maxLength": Run._meta.get_field("requested_device_class").max_length},
    "priority": lambda: {"enum": Run.Priority.values},
    "rank": lambda: {"items": {"type": "integer", "minimum": 0}, "maxItems": MOST_STARTED},
    "gpu": lambda: {"enum": [ALL_GPUS, CPU, *gpus()]},
    "what_to_change": lambda: {"enum": ["", *Scope]},
    "frontier": lambda: {"items": _SIZE, "uniqueItems": True, "maxItems": MAX_LENGTHS},
}
"""What no declaration says of a member."""


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
    if name in _BESIDE:
        schema |= _BESIDE[name]()
    unit = next(({"x-unit": unit} for ending, unit in _UNITS.items() if name.endswith(ending)), {})
    return schema | {"description": declared.description} | unit
