"""PURE: which settings a model of the catalogue takes, and the values of its input's size."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from analysis.api.kinds.members import Schema
from engine.catalog import Workload
from engine.settings.adapter_settings import NEEDED
from engine.settings.step_settings import FULL
from engine.spec import DEFAULTS, RunSpec


def settings_of(workload: Workload) -> list[str]:
    refused = _refused_by(workload)
    return [field.name for field in fields(RunSpec) if field.name not in refused]


def input_schema(workload: Workload) -> Schema:
    """Return the values of the setting that sets the size of the input."""
    low, high = workload.input_sizes
    schema = {"minimum": low, "maximum": high, "default": workload.default_input_size}
    return schema | ({"multipleOf": workload.input_multiple_of} if workload.input_multiple_of > 1 else {})


def narrowed_by(workload: Workload) -> Schema:
    """Describe what a body that names this model may hold."""
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
