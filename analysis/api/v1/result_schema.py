"""PURE: JSON Schema of a run's spec and result, as components of the OpenAPI document.

msgspec reads it off the engine's dataclasses. What their `to_dict` adds is added here.
"""

from __future__ import annotations

from inspect import cleandoc

import msgspec

from analysis.api.v1.spec_schema import Schema, spec_properties
from engine.estimate.types import Estimate
from engine.result import RunResult
from engine.spec import RunSpec, SearchSpec
from engine.validation.verdict import ValidationResult, Verdict

_REF = "#/components/schemas/Engine{name}"


def ref(name: str) -> Schema:
    """Refer to the component of one of the engine's classes."""
    return {"$ref": _REF.format(name=name)}


RESULT: Schema = {"oneOf": [ref(RunResult.__name__), ref("Estimates"), ref(ValidationResult.__name__)]}
"""The result of a measurement, of an estimate, or of a validation."""


def engine_components() -> dict[str, Schema]:
    """Return the schemas by the names of their components."""
    _, found = msgspec.json.schema_components(
        (RunResult, Estimate, ValidationResult), schema_hook=_of_protocol, ref_template=_REF
    )
    found["RunResult"]["properties"] |= {
        "schema": {"type": "integer", "description": "Version of this form."},
        "fits": {"type": ["boolean", "null"], "description": "Whether `check_batch_size` of the spec trained."},
        "kinds": {
            "type": "object",
            "additionalProperties": {"enum": ["measured", "estimated", "derived", "assumed"]},
            "description": "Kind of each figure, by its path or group.",
        },
    }
    found["ValidationResult"]["properties"] |= {
        "schema": {"type": "integer", "description": "Version of this form."},
        "verdict": {"enum": [each.value for each in Verdict], "description": "Failed where one check failed."},
        "verdict_text": {"type": "string", "description": "The verdict in a sentence."},
    }
    found["Check"]["properties"]["text"] = {"type": "string", "description": "The claim with its verdict."}
    found["DeviceFacts"]["properties"]["is_shared"] = {
        "type": "boolean",
        "description": "Whether other processes held memory of the device.",
    }
    found["RunSpec"]["properties"] = _stored_spec()
    found["Estimates"] = {
        "title": "Estimates",
        "type": "object",
        "description": "The result of an estimate: an estimate for each card.",
        "required": ["estimates"],
        "properties": {"estimates": {"type": "array", "items": ref(Estimate.__name__)}},
    }
    for schema in found.values():
        schema["description"] = cleandoc(schema["description"])
        del schema["title"]  # generated clients name their classes by it, and other components have the same
    return {f"Engine{name}": schema for name, schema in found.items()}


def _of_protocol(kind: type) -> Schema:
    if kind is SearchSpec:  # of a run it is this one
        return ref(RunSpec.__name__)
    raise NotImplementedError


def _stored_spec() -> Schema:
    """Describe a spec as it is stored: sizes are bytes, and its model may no longer be on offer."""
    described = spec_properties()
    described["memory_limit_bytes"]["type"] = ["integer", "null"]
    del described["model"]["enum"]
    return described
