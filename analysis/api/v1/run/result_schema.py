"""PURE: JSON Schema of a run's spec and result, as components of the OpenAPI document.

msgspec reads it off the engine's dataclasses. What their `to_dict` adds is added here.
"""

from __future__ import annotations

from inspect import cleandoc

import msgspec

from analysis.api.v1.run.spec_schema import Schema, spec_properties
from engine.estimate.types import Estimate
from engine.results.result import RunResult
from engine.spec import RunSpec, SearchSpec
from engine.validation.verdict import ValidationResult, Verdict

_REF = "#/components/schemas/Engine{name}"


def ref(name: str) -> Schema:
    """Refer to the component of one of the engine's classes."""
    return {"$ref": _REF.format(name=name)}


ORIGIN: Schema = {
    "origin": {"type": ["string", "null"], "description": "In result/: who reported it, from where."},
    "reported_from": {"type": "string", "description": "In result/: the host. Empty: it ran on this portal."},
    "is_trusted": {"type": "boolean", "description": "In result/: false is not verified by this lab."},
}
"""Members of a result where it is answered alone. In a run they are members of the run."""
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
    # a stored spec has sizes in bytes, and its model may no longer be on offer
    stored_spec = found["RunSpec"]["properties"] = spec_properties()
    stored_spec["memory_limit_bytes"]["type"] = ["integer", "null"]
    del stored_spec["model"]["enum"]
    found["Estimates"] = {
        "title": "Estimates",
        "type": "object",
        "description": "The result of an estimate: an estimate for each card.",
        "required": ["estimates"],
        "properties": {"estimates": {"type": "array", "items": ref(Estimate.__name__)}},
    }
    for name in ("RunResult", "Estimates", "ValidationResult"):
        found[name]["properties"] |= ORIGIN
    for schema in found.values():
        schema["description"] = cleandoc(schema["description"])
        del schema["title"]  # generated clients name their classes by it, and other components have the same
    return {f"Engine{name}": schema for name, schema in found.items()}


def _of_protocol(kind: type) -> Schema:
    if kind is SearchSpec:  # a run's is this one
        return ref(RunSpec.__name__)
    raise NotImplementedError
