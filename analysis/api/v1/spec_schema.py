"""PURE: the JSON Schema (2020-12) of the body that starts a run, read off `engine.spec`.

Types, defaults, choices, ranges and descriptions are the engine's own.
What depends on the model, such as the longest sequence it takes, stands under `allOf`.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any

from analysis.api.run_request import NOT_OF_ESTIMATES, ONLY_ESTIMATES, REQUESTED_KINDS
from analysis.models import ALL_GPUS, CPU, Run
from engine.catalog import WORKLOADS, Workload
from engine.estimate.frontier import MAX_LENGTHS
from engine.estimate.gpus import gpus
from engine.estimate.what_to_change import Scope
from engine.spec import CHOICES, OPTIONAL, RANGES, SETTINGS, VALUE_TYPES, RunSpec
from engine.training_spec import DEVICE_NAMES, FULL

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}
_UNITS = {"_bytes": "bytes", "_seconds": "seconds", "_usd": "US dollars", "_batch_size": "samples"}


def run_schema() -> Schema:
    """Of the body of `POST /api/v1/runs/`."""
    return {
        "$schema": DIALECT,
        "title": "Run",
        "description": "The request of a run; only the model is required. Sizes are bytes, times seconds.",
        "type": "object",
        "required": [field.name for field in fields(RunSpec) if field.default is MISSING],
        "properties": {**spec_properties(), **_queue_properties()},
        "additionalProperties": False,
        "allOf": [*map(_of_model, WORKLOADS.values()), *_of_kinds()],
    }


def spec_properties() -> Schema:
    """Of the fields of a spec alone: needs no catalogue of cards, which a lab's own file may have broken."""
    return {field.name: _property(field) for field in fields(RunSpec)}


def settings_of(workload: Workload) -> list[str]:
    """List the fields of a spec that this workload takes."""
    refused = _refused_by(workload)
    return [field.name for field in fields(RunSpec) if field.name not in refused]


def input_schema(workload: Workload) -> Schema:
    """Of the one setting that changes the size of its input."""
    low, high = workload.input_sizes
    schema = {"minimum": low, "maximum": high, "default": workload.default_input_size}
    return schema | ({"multipleOf": workload.input_multiple_of} if workload.input_multiple_of > 1 else {})


def _property(field: Field[Any]) -> Schema:
    types = [_TYPES[VALUE_TYPES[field.name]], *(["null"] if field.name in OPTIONAL else [])]
    schema: Schema = {"type": types[0] if len(types) == 1 else types}
    if field.name in CHOICES:
        schema["enum"] = list(CHOICES[field.name])
    if field.name in RANGES:
        schema["minimum"], schema["maximum"] = RANGES[field.name]
    if field.name == "device":
        schema["pattern"] = f"^(?:{DEVICE_NAMES.pattern})$"
    if field.name == "config":
        schema["type"] = ["object", "string", "null"]
    if field.name == "memory_limit_bytes":
        schema["type"] = ["integer", "string", "null"]
    if field.default is not MISSING:
        schema["default"] = field.default
    return schema | {"description": SETTINGS[field.name].description} | _unit(field.name)


def _unit(name: str) -> Schema:
    return next(({"x-unit": unit} for ending, unit in _UNITS.items() if name.endswith(ending)), {})


def _queue_properties() -> Schema:
    """Describe what a body may hold beside the spec: kind, card, and its place in the queue."""
    class_length = Run._meta.get_field("requested_device_class").max_length
    return {
        "kind": {
            "enum": list(REQUESTED_KINDS),
            "default": Run.Kind.MEASUREMENT.value,
            "description": "Measured, or predicted.",
        },
        "gpu": {
            "enum": [ALL_GPUS, CPU, *gpus()],
            "default": ALL_GPUS,
            "description": "Of an estimate: a card of /api/v1/gpus/, all of them, or cpu.",
        },
        "what_to_change": {
            "enum": ["", *Scope],
            "default": "",
            "description": "Of an estimate for one card: also estimate other settings with which the batch would fit.",
        },
        "frontier": {
            "type": "array",
            "items": {"type": "integer", "minimum": 1},
            "uniqueItems": True,
            "maxItems": MAX_LENGTHS,
            "default": [],
            "description": "Of an estimate for one card: 2 or more lengths or image sizes, the largest batch at each.",
        },
        "device_class": {
            "type": "string",
            "maxLength": class_length,
            "default": "",
            "description": "Part of the card's name, such as A100: any device of that name will do.",
        },
        "priority": {
            "enum": Run.Priority.values,
            "default": Run.Priority.NORMAL.value,
            "description": "The higher goes first; 1 is for GPU managers.",
        },
        "accepts_shared_device": {
            "type": "boolean",
            "default": False,
            "description": "Start although other processes use the card: such a run is no baseline.",
        },
    }


def _of_model(workload: Workload) -> Schema:
    """Describe what holds for this model alone."""
    narrowed: Schema = {name: {"const": default} for name, default in _refused_by(workload).items()}
    return {
        "if": {"properties": {"model": {"const": workload.id}}, "required": ["model"]},
        "then": {"properties": narrowed | {workload.input_field: input_schema(workload)} | _chosen_of(workload)},
    }


def _chosen_of(workload: Workload) -> Schema:
    """Describe the values of settings that are the model's own."""
    frozen: Schema = {"frozen_blocks": {"maximum": workload.block_count}} if workload.block_count else {}
    return frozen | {"attention": {"enum": ["auto", *workload.attentions]}}


def _refused_by(workload: Workload) -> dict[str, bool | str | None]:
    """List the fields that it has no use for, each with the one value it may have."""
    refused: dict[str, bool | str | None] = {"image_size" if workload.is_text else "sequence_length": None}
    if not workload.has_gradient_checkpointing:
        refused["gradient_checkpointing"] = False
    if not workload.block_count:
        refused["frozen_blocks"] = None
    if workload.architecture != "cnn":
        refused["channels_last"] = False
    if workload.architecture == "cnn" or workload.library != "transformers":
        refused["load_in_4bit"] = False
    if workload.task != "text-generation":
        refused["sequences"] = FULL
    if not workload.has_eval_loss:
        refused["mode"] = "train"
    if workload.huggingface_id is None:
        refused["pretrained"] = False
    return refused


def _of_kinds() -> list[Schema]:
    is_estimate = {"properties": {"kind": {"const": Run.Kind.ESTIMATE.value}}, "required": ["kind"]}
    of_measurements: Schema = dict.fromkeys(NOT_OF_ESTIMATES, False)
    return [
        {
            "if": is_estimate,
            "then": {"properties": of_measurements},
            "else": {"properties": dict.fromkeys(ONLY_ESTIMATES, False)},
        }
    ]
