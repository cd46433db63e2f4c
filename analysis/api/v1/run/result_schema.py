"""PURE: JSON Schema of spec and result, off the engine's dataclasses; the kinds of run add what `to_dict` adds."""

from __future__ import annotations

from inspect import cleandoc

import msgspec

from analysis.api.kinds import BY_KIND
from analysis.api.kinds.requests import COMPONENT, component
from analysis.api.kinds.setting_schema import Schema
from analysis.api.v1.run.spec_schema import spec_properties
from engine.estimate.spec import EstimateSpec
from engine.settings.spec_checks import is_of_bytes
from engine.spec import RunSpec, SearchSpec

ORIGIN: Schema = {
    "origin": {
        "type": ["string", "null"],
        "description": "Who reported the run, and from where. null: it ran on a device of this portal.",
    },
    "reported_from": {
        "type": "string",
        "description": "Host that reported the run. Empty: it ran on a device of this portal.",
    },
    "is_trusted": {
        "type": "boolean",
        "description": "false: reported, and neither its token nor its host is trusted: not verified by this lab.",
    },
}
"""Members beside the figures of a run; of its result where that is answered alone."""
_RESULTS = dict.fromkeys(each.result_name for each in BY_KIND.values())
RESULT: Schema = {"oneOf": [component(name) for name in _RESULTS]}
SPEC: Schema = {"anyOf": [component(name) for name in dict.fromkeys(each.spec_name for each in BY_KIND.values())]}
"""The result and the spec of a run of any kind."""


def engine_components() -> dict[str, Schema]:
    types = dict.fromkeys(each.result_type for each in BY_KIND.values())
    _, found = msgspec.json.schema_components(types, schema_hook=_of_protocol, ref_template=COMPONENT)
    for name, added in (item for each in BY_KIND.values() for item in each.described_result().items()):
        known = found.get(name, {})
        found[name] = {**known, **added, "properties": {**known.get("properties", {}), **added["properties"]}}
    found["DeviceFacts"]["properties"]["is_shared"] = {
        "type": "boolean",
        "description": "Whether other processes held memory of the device.",
    }
    # a stored spec has sizes in bytes, and its model may no longer be on offer
    stored_spec = found["RunSpec"]["properties"] = spec_properties()
    for name in filter(is_of_bytes, stored_spec):
        stored_spec[name]["type"] = ["integer", "null"]
    del stored_spec["model"]["enum"]
    found[EstimateSpec.__name__]["properties"] |= stored_spec
    for name in _RESULTS:
        found[name]["properties"] |= ORIGIN
    for schema in found.values():
        schema["description"] = cleandoc(schema["description"])
        del schema["title"]  # generated clients name their classes by it, and other components have the same
    return {f"Engine{name}": schema for name, schema in found.items()}


def _of_protocol(kind: type) -> Schema:
    if kind is SearchSpec:  # a run's is this one
        return component(RunSpec.__name__)
    raise NotImplementedError
