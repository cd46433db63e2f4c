"""PURE: JSON Schema of spec and result, off the engine's dataclasses, with the members that their `to_dict` adds."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import msgspec

from analysis.api.kinds import BY_KIND
from analysis.api.kinds.members import Schema, properties_of
from engine.advice.document import Advice
from engine.estimate.spec import EstimateSpec
from engine.questions.validation.verdict import Verdict
from engine.settings.rank_settings import OF_STARTS
from engine.settings.spec import RunSpec, SearchSpec
from engine.settings.spec_checks import is_of_bytes

COMPONENT = "#/components/schemas/Engine{name}"


def component(name: str) -> dict[str, str]:
    return {"$ref": COMPONENT.format(name=name)}


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
        "description": "false: reported, and neither its token nor its host is trusted: not trusted by this lab.",
    },
}
"""Members beside the figures of a run; of its result where that is answered alone."""
_RESULTS = dict.fromkeys(each.result_name for each in BY_KIND.values())
RESULT: Schema = {"oneOf": [component(name) for name in _RESULTS]}
SPEC: Schema = {"anyOf": [component(name) for name in dict.fromkeys(each.spec_name for each in BY_KIND.values())]}
"""The result and the spec of a run of any kind."""


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


_VERSION = {"schema": {"type": "integer", "description": "Version of this form."}}
_ADDED: dict[str, Schema] = {
    "DeviceFacts": {
        "is_shared": {"type": "boolean", "description": "Whether other processes held memory of the device."}
    },
    "RunResult": {
        **_VERSION,
        "fits": {"type": ["boolean", "null"], "description": "Whether `check_batch_size` of the spec trained."},
        "kinds": {
            "type": "object",
            "additionalProperties": {"enum": ["measured", "estimated", "derived", "assumed"]},
            "description": "Kind of each figure, by its path or group.",
        },
    },
    "Check": {"text": _text("The claim with its verdict.")},
    "ValidationResult": {
        **_VERSION,
        "verdict": {"enum": [each.value for each in Verdict], "description": "Failed where one check failed."},
        "verdict_text": _text("The verdict in a sentence."),
    },
    "FasterResult": {**_VERSION, "headline": _text("What makes the training faster, in a sentence.")},
    "WatchSpec": {"model": _text("What is watched, in a word: its script's name.")},
    "WatchResult": {
        **_VERSION,
        "headline": _text("What it used, when its memory will end, or why it ended, in a sentence."),
        "report": {"type": "object", "description": "As `memorymark watch --json` prints it."},
    },
    "OwnRaceSpec": {
        "model": _text("What is raced, in a word: its name, or its script's."),
        "function": {"type": ["string", "null"], "description": "None: a function is not raced."},
        "catalogue": {"type": ["object", "null"], "description": "The settings of a catalogue model, if it is one."},
    },
    "OwnRaceResult": {
        **_VERSION,
        "goal": _text("What the command was tuned for."),
        "headline": _text("What makes the script faster, in a sentence."),
    },
}
"""The members that a document has beside the fields of its class."""


def engine_components() -> dict[str, Schema]:
    types = dict.fromkeys(each.result_type for each in BY_KIND.values())
    _, found = msgspec.json.schema_components(types, schema_hook=_of_protocol, ref_template=COMPONENT)
    found |= _of_estimates()
    for name, added in _ADDED.items():
        found[name]["properties"] |= added
    # a stored spec has sizes in bytes, and its model may no longer be on offer
    stored_spec = found["RunSpec"]["properties"] = spec_properties()
    for name in filter(is_of_bytes, stored_spec):
        stored_spec[name]["type"] = ["integer", "null"]
    del stored_spec["model"]["enum"]
    found[EstimateSpec.__name__]["properties"] |= stored_spec
    for name in _RESULTS:
        found[name]["properties"] |= ORIGIN
    for schema in found.values():
        _open_tuples(schema)
        schema["description"] = cleandoc(schema["description"])
        schema.pop("title", None)  # generated clients name their classes by it, and other components have the same
    return {f"Engine{name}": schema for name, schema in found.items()}


def _open_tuples(schema: Any) -> None:
    """Name no type by its place in a list, in the schema or within it: generators of clients cannot read that."""
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for part in parts:
        _open_tuples(part)
    if isinstance(schema, dict) and "prefixItems" in schema:
        del schema["prefixItems"]
        schema["items"] = {}


def advice_components() -> dict[str, Schema]:
    """Return the components of the OpenAPI document that describe an advice, read off its classes."""
    _, found = msgspec.json.schema_components([Advice], ref_template="#/components/schemas/{name}")
    found["Advice"]["properties"] |= ORIGIN
    for schema in found.values():
        schema |= {"required": list(schema["properties"]), "description": cleandoc(schema["description"])}
        del schema["title"]
    return found


def spec_properties() -> Schema:
    """Return the schema of the spec's fields. Works even if the lab's catalogue of cards is invalid."""
    compares = {"type": "boolean", "default": True, "description": OF_STARTS["compare_speed"].description}
    return {**properties_of(RunSpec), "compare_speed": compares}


def _of_estimates() -> dict[str, Schema]:
    """Describe the documents of an estimate: no class has all of their members."""
    smallest = (
        "Of several GPUs: that with the least memory in which `current_batch_size` fits with the margin; "
        "null where it fits none."
    )
    return {
        "Estimates": {
            "type": "object",
            "description": "The result of an estimate: an estimate for each GPU.",
            "required": ["estimates"],
            "properties": {
                "estimates": {"type": "array", "items": component("Estimate")},
                "smallest_gpu": {"type": ["string", "null"], "description": smallest},
            },
        },
        EstimateSpec.__name__: {
            "type": "object",
            "description": "The spec of an estimate: that of a run, and what is estimated of it.",
            "properties": properties_of(EstimateSpec),
        },
    }


def _of_protocol(kind: type) -> Schema:
    if kind is SearchSpec:  # a run's is this one
        return component(RunSpec.__name__)
    raise NotImplementedError
