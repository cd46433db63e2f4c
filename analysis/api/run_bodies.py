"""The bodies that ask for a run: what they hold, as JSON Schema, and how each is read. Every refusal names its field.

A member is declared in `engine.settings`, or in `kinds.members`; a kind says in `kinds` which members it takes.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from django.contrib.auth.models import User

from analysis.api.kinds import BY_KIND
from analysis.api.kinds.members import Queued, Schema, properties_of
from analysis.api.kinds.validation import Validation
from analysis.models import PUBLISHED_KINDS, Run, RunKind
from analysis.runs.commands import SETTABLE
from analysis.runs.queue.placement import placement_of
from analysis.runs.services import run_create
from engine.errors import SpecError
from engine.questions.kinds import asked
from engine.settings.adapter_settings import NEEDED
from engine.settings.catalog import WORKLOADS, Workload
from engine.settings.spec import DEFAULTS, RANGES, RunSpec
from engine.settings.training_spec import lacking

REQUESTED_KINDS = tuple(kind.value for kind in RunKind if not BY_KIND[kind].elsewhere)
"""What the body of a run may ask for; validations and commands have addresses of their own."""
DEFAULT_KIND = RunKind.MEASUREMENT


def run_stored(body: dict[str, Any], user: User) -> Run:
    """Store a run of the kind in the body. Raises SpecError."""
    return run_create(**BY_KIND[_requested_kind(body)].submission(_without(body, "kind"), user))


def run_cloned(run: Run, changes: dict[str, Any], user: User) -> Run:
    """Store a run with the request of another, with these changes, which may include the kind. Raises SpecError."""
    before = kind = BY_KIND[run.kind].kind_of_clone(run)
    values = BY_KIND[run.kind].body_of(run)
    if kind in REQUESTED_KINDS:
        kind, changes = _requested_kind({"kind": kind, **changes}), _without(changes, "kind")
    clones = BY_KIND[kind]
    if kind != before:
        if not asked(before).uses_device:  # a device has its own price, whatever an estimate assumed
            values = _without(values, "price_per_hour_usd")
        values = {name: value for name, value in values.items() if name in clones.members}
    arguments = clones.submission_like(run, {**values, **changes}, user)
    names_place = not {"device", "device_class"}.isdisjoint(changes)
    if run.needs_device and asked(kind).uses_device and not names_place:
        arguments["place"] = placement_of(run)  # by its id, as a device of another host may have the same name
    return run_create(**arguments)


def _requested_kind(values: dict[str, Any]) -> str:
    """Return the `kind`; the default is a measurement. Raises SpecError, also for fields that it does not have."""
    kind = values.get("kind", DEFAULT_KIND)
    if not isinstance(kind, str):
        raise SpecError("kind", "must be text")
    if kind not in REQUESTED_KINDS:
        elsewhere = BY_KIND[kind].elsewhere if kind in dict(PUBLISHED_KINDS) else ""
        raise SpecError("kind", elsewhere or f"must be one of {', '.join(REQUESTED_KINDS)}")
    for name, why in BY_KIND[kind].refused.items():
        if name in values:
            raise SpecError(name, why)
    return kind


def _without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def run_schema() -> Schema:
    """Return the JSON Schema (2020-12) of the body of a run. `allOf` has the rules by model and by kind."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Run",
        "description": "The request of a run; only the model is required. Sizes are bytes, times seconds.",
        "type": "object",
        "required": ["model"],
        "properties": _run_properties(),
        "additionalProperties": False,
        "allOf": [*map(_of_model, WORKLOADS.values()), *map(_of_kind, REQUESTED_KINDS)],
    }


def body_components() -> dict[str, Schema]:
    """Describe every body that asks for a run, by the name of its component."""
    run, queue = _open(_run_properties()), properties_of(Queued)
    low, high = RANGES["check_batch_size"]
    size = {"type": "integer", "minimum": low, "maximum": high, "description": "Batch size to check."}
    fits = {"batch_size": size, **_without(_open(properties_of(RunSpec)), "check_batch_size"), **queue}
    command = {name: run.get(name, {"type": "boolean"}) for name in ("device", *SETTABLE)}
    bodies: dict[str, tuple[Schema, list[str]]] = {
        "RunRequestRequest": (run, ["model"]),
        "EstimateRequestRequest": (run, ["model"]),
        "RunCloneRequestRequest": (_without_defaults(run), []),
        "FitsRequestRequest": (fits, ["batch_size", "model"]),
        "ValidationRequestRequest": (_open(Validation().properties), ["model"]),
        "CommandRunRequestRequest": (_without_defaults({**command, **queue}), []),
    }
    return {
        name: {"type": "object", "properties": properties, **({"required": required} if required else {})}
        for name, (properties, required) in bodies.items()
    }


def _run_properties() -> Schema:
    kinds = {
        "enum": list(REQUESTED_KINDS),
        "default": DEFAULT_KIND.value,
        "description": "Measured, predicted, or a race of settings.",
    }
    found = {name: schema for kind in REQUESTED_KINDS for name, schema in BY_KIND[kind].properties.items()}
    return {"kind": kinds, **found}


def _open(properties: Schema) -> Schema:
    """Leave names open: a client generated today may name a model or a card added tomorrow."""
    return {
        name: {"examples" if name in ("model", "gpu") and key == "enum" else key: value for key, value in each.items()}
        for name, each in properties.items()
    }


def _without_defaults(properties: Schema) -> Schema:
    """Leave the defaults out: the run's or the command's own values are the defaults here."""
    return {name: _without(each, "default") for name, each in properties.items()}


def _of_kind(kind: str) -> Schema:
    """Describe which fields a body of this kind must not have."""
    named = [] if kind == DEFAULT_KIND else ["kind"]
    return {
        "if": {"properties": {"kind": {"const": kind}}, "required": named},
        "then": {"properties": dict.fromkeys(BY_KIND[kind].refused, False)},
    }


def settings_of(workload: Workload) -> list[str]:
    refused = _refused_by(workload)
    return [field.name for field in fields(RunSpec) if field.name not in refused]


def input_schema(workload: Workload) -> Schema:
    """Return the values of the setting that sets the size of the input."""
    low, high = workload.input_sizes
    schema = {"minimum": low, "maximum": high, "default": workload.default_input_size}
    return schema | ({"multipleOf": workload.input_multiple_of} if workload.input_multiple_of > 1 else {})


def _of_model(workload: Workload) -> Schema:
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
    names = list(lacking(workload))
    for needed, others in NEEDED.items():  # which mean nothing without it
        names += others if needed in names else ()
    return {name: DEFAULTS[name] for name in names}
