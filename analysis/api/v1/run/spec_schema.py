"""PURE: JSON Schema (2020-12) of the body that starts a run, off `engine.spec`; `allOf` has what a model decides."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from analysis.api.kinds import BY_KIND
from analysis.api.kinds.requests import QUEUE_KEYS
from analysis.api.kinds.setting_schema import Schema, properties_of
from analysis.api.run_request import DEFAULT_KIND, REQUESTED_KINDS
from analysis.models import Run
from analysis.runs.commands import SETTABLE
from engine.catalog import WORKLOADS, Workload
from engine.estimate.spec import OWN
from engine.settings.adapter_settings import NEEDED
from engine.settings.rank_settings import OF_STARTS
from engine.settings.step_settings import FULL
from engine.spec import DEFAULTS, RANGES, RunSpec
from engine.validation.spec import ValidationSpec

_OF_KINDS = ("kind", "tried", *OWN, *OF_STARTS)
"""Members of the request of a run that the check of one batch size does not take."""


def run_schema() -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Run",
        "description": "The request of a run; only the model is required. Sizes are bytes, times seconds.",
        "type": "object",
        "required": [field.name for field in fields(RunSpec) if field.default is MISSING],
        "properties": {**spec_properties(), **_queue_properties()},
        "additionalProperties": False,
        "allOf": [
            *map(_of_model, WORKLOADS.values()),
            *map(_of_kind, REQUESTED_KINDS),
        ],
    }


def body_components() -> dict[str, Schema]:
    """Describe every body that asks for a run, by the name of its component.

    A client generated today may name a model or a card added tomorrow.
    """
    run = {**spec_properties(), **_queue_properties()}
    for name in ("model", "gpu"):
        run[name]["examples"] = run[name].pop("enum")
    of_starts = {name: run[name] for name in run if name not in (*QUEUE_KEYS, *_OF_KINDS, "check_batch_size")}
    queue = {name: run[name] for name in QUEUE_KEYS}
    low, high = RANGES["check_batch_size"]
    size = {"type": "integer", "minimum": low, "maximum": high, "description": "Batch size to check."}
    command = {name: run.get(name, {"type": "boolean"}) for name in ("device", *SETTABLE)}
    bodies: dict[str, tuple[Schema, list[str]]] = {
        "RunRequestRequest": (run, ["model"]),
        "EstimateRequestRequest": (run, ["model"]),
        "RunCloneRequestRequest": (_without_defaults(run), []),
        "FitsRequestRequest": ({"batch_size": size, **of_starts, **queue}, ["batch_size", "model"]),
        "ValidationRequestRequest": ({**properties_of(ValidationSpec), "model": run["model"], **queue}, ["model"]),
        "CommandRunRequestRequest": (_without_defaults({**command, **queue}), []),
    }
    return {
        name: {"type": "object", "properties": properties, **({"required": required} if required else {})}
        for name, (properties, required) in bodies.items()
    }


def _without_defaults(properties: Schema) -> Schema:
    """Leave the defaults out: the run's or the command's own values are the defaults here."""
    return {name: {key: each[key] for key in each if key != "default"} for name, each in properties.items()}


def spec_properties() -> Schema:
    """Return the schema of the spec's fields. Works even if the lab's catalogue of cards is invalid."""
    compares = {"type": "boolean", "default": True, "description": OF_STARTS["compare_speed"].description}
    return {**properties_of(RunSpec), "compare_speed": compares}


def settings_of(workload: Workload) -> list[str]:
    refused = _refused_by(workload)
    return [field.name for field in fields(RunSpec) if field.name not in refused]


def input_schema(workload: Workload) -> Schema:
    """Return the values of the setting that sets the size of the input."""
    low, high = workload.input_sizes
    schema = {"minimum": low, "maximum": high, "default": workload.default_input_size}
    return schema | ({"multipleOf": workload.input_multiple_of} if workload.input_multiple_of > 1 else {})


def _queue_properties() -> Schema:
    """Describe what a body may hold beside the spec: kind, card, and its place in the queue."""
    class_length = Run._meta.get_field("requested_device_class").max_length
    return {
        "kind": {
            "enum": list(REQUESTED_KINDS),
            "default": DEFAULT_KIND.value,
            "description": "Measured, predicted, or a race of settings.",
        },
        **{name: schema for kind in REQUESTED_KINDS for name, schema in BY_KIND[kind].own_properties().items()},
        "device_class": {
            "type": "string",
            "maxLength": class_length,
            "default": "",
            "description": "Part of the GPU's name, such as A100: any device of that name will do.",
        },
        "priority": {
            "enum": Run.Priority.values,
            "default": Run.Priority.NORMAL.value,
            "description": "The higher goes first; 1 is for GPU managers.",
        },
        "accepts_shared_device": {
            "type": "boolean",
            "default": False,
            "description": "Start although other processes use the GPU: such a run is no baseline.",
        },
    }


def _of_kind(kind: str) -> Schema:
    """Describe which fields a body of this kind must not have."""
    named = [] if kind == DEFAULT_KIND else ["kind"]
    return {
        "if": {"properties": {"kind": {"const": kind}}, "required": named},
        "then": {"properties": dict.fromkeys(BY_KIND[kind].refused, False)},
    }


def _of_model(workload: Workload) -> Schema:
    narrowed: Schema = {name: {"const": default} for name, default in _refused_by(workload).items()}
    narrowed[workload.input_field] = input_schema(workload)
    if workload.block_count:
        narrowed["frozen_blocks"] = {"maximum": workload.block_count}
    narrowed["attention"] = {"enum": ["auto", *workload.attentions]}
    return {
        "if": {"properties": {"model": {"const": workload.id}}, "required": ["model"]},
        "then": {"properties": narrowed},
    }


def _refused_by(workload: Workload) -> dict[str, Any]:
    """List the fields that it has no use for, each with the one value it may have."""
    refused: dict[str, Any] = {"image_size" if workload.is_text else "sequence_length": None}
    if not workload.has_gradient_checkpointing:
        refused["gradient_checkpointing"] = False
    if not workload.block_count:
        refused["frozen_blocks"] = None
    if workload.architecture != "cnn":
        refused["channels_last"] = False
    if workload.library != "transformers":
        refused |= {name: DEFAULTS[name] for name in ("lora_rank", *NEEDED["lora_rank"])}
    if workload.architecture == "cnn" or workload.library != "transformers":
        refused |= {name: DEFAULTS[name] for name in ("load_in_8bit", "load_in_4bit", *NEEDED["load_in_4bit"])}
    if workload.task != "text-generation":
        refused |= {"sequences": FULL, "loss_chunk_tokens": None, "half_precision_loss": False, "liger_loss": False}
        refused["four_bit_output_layer"] = False
    if not workload.has_cache:
        refused["without_cache"] = False
    if not workload.has_eval_loss:
        refused["mode"] = "train"
    if workload.huggingface_id is None:
        refused["pretrained"] = False
    return refused
