"""JSON body of a request -> arguments of `services.run_create`. Every refusal names its field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django.http import HttpRequest

from analysis.http.errors import BadRequest
from analysis.http.strict_json import BadJsonError, strict_json
from analysis.models import ALL_GPUS, Run
from analysis.runs.commands import command_spec, registered_commands
from analysis.runs.placement import placement_find, placement_of
from analysis.runs.services import estimate_create, run_create
from engine.errors import SpecError
from engine.spec import RunSpec
from engine.tune.spec import TuneSpec
from engine.validation.spec import ValidationSpec

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

QUEUE_KEYS = ("device_class", "priority", "accepts_shared_device")
"""Keys that a request may have in addition to those of a RunSpec."""
ESTIMATE_KEYS = ("gpu", "priority", "what_to_change", "frontier")
ONLY_ESTIMATES = ("gpu", "what_to_change", "frontier")
"""Those of them that a measurement does not have."""
REQUESTED_KINDS = (Run.Kind.MEASUREMENT.value, Run.Kind.ESTIMATE.value)
"""What the body of a run may ask for; validations have an address of their own."""
_OF_THE_RUN = ("device", "config_parameters")
"""Of a stored spec: where it ran and what was counted there, which do not hold for a clone with changes."""
NOT_OF_ESTIMATES = ("device", "device_class", "accepts_shared_device", "check_batch_size", "time_budget_seconds")

T = TypeVar("T")
_KINDS = {str: "text", int: "a whole number", bool: "true or false"}


def json_object(request: HttpRequest) -> dict[str, Any]:
    """Read the body as an object; errors have the messages of the contract."""
    if not request.body.strip():
        raise BadRequest("Request body is required")
    try:
        body = strict_json(request.body)
    except BadJsonError as exc:
        raise BadRequest("Request body must be valid JSON") from exc
    if not isinstance(body, dict):
        raise BadRequest("Request body must be a JSON object")
    return body


def run_stored(body: dict[str, Any], user: User) -> Run:
    """Store a run of the kind in the body. Raises SpecError."""
    is_estimate = is_for_estimate(body)
    values = {name: value for name, value in body.items() if name != "kind"}
    if is_estimate:
        return estimate_create(**estimate_submission(values, user))
    return run_create(**submission(values, user))


def run_cloned(run: Run, changes: dict[str, Any], user: User) -> Run:
    """Store a run with the request of another, with these changes, which may include the kind. Raises SpecError."""
    if run.is_command:
        return _command_cloned(run, changes, user)
    if run.is_validation:
        return _validation_cloned(run, changes, user)
    values = {**_values_of(run, is_for_estimate({"kind": run.kind, **changes})), **changes}
    names_place = not {"device", "device_class"}.isdisjoint(changes)
    if values["kind"] == Run.Kind.ESTIMATE or run.is_estimate or names_place:
        return run_stored(values, user)
    # by its id, as a device of another host may have the same name
    del values["kind"]
    return run_create(**{**submission(values, user), "place": placement_of(run)})


def _command_cloned(run: Run, changes: dict[str, Any], user: User) -> Run:
    """Store a run of the same command, with the settings that its registration offers. Raises SpecError."""
    name = run.spec.get("name")  # a reported one has none, whatever its script or function is called
    known = registered_commands().get(name or "")
    offered = known.settings if known else ()
    settings = {name: run.spec[name] for name in offered if run.spec.get(name) is not None}
    names_place = not {"device", "device_class"}.isdisjoint(changes)
    values = {**settings, "priority": min(run.priority, Run.Priority.NORMAL), **changes}
    arguments = command_submission(name, values, user)
    return run_create(**arguments if names_place else {**arguments, "place": placement_of(run)})


def _validation_cloned(run: Run, changes: dict[str, Any], user: User) -> Run:
    """Store a validation with the settings of another, with these changes. Raises SpecError."""
    names_place = not {"device", "device_class"}.isdisjoint(changes)
    values = {**_settings_of(run), **changes}
    arguments = validation_submission(values, user)
    return run_create(**arguments if names_place else {**arguments, "place": placement_of(run)})


def _settings_of(run: Run) -> dict[str, Any]:
    settings = {name: value for name, value in run.spec.items() if name not in _OF_THE_RUN}
    return {**settings, "priority": min(run.priority, Run.Priority.NORMAL)}


def _values_of(run: Run, is_estimate: bool) -> dict[str, Any]:
    """Return the body of a request for this run, as a measurement or as an estimate."""
    values = _settings_of(run)
    if run.uses_device_price and not (run.is_estimate and is_estimate):
        del values["price_per_hour_usd"]
    if run.is_estimate or is_estimate:
        del values["time_budget_seconds"]
        values.pop("check_batch_size", None)  # absent in runs of before 0.5
    if is_estimate:
        of_estimate = {name: getattr(run, name) for name in ONLY_ESTIMATES} if run.is_estimate else {}
        return {**values, "kind": Run.Kind.ESTIMATE, **of_estimate}
    values["kind"] = Run.Kind.MEASUREMENT
    if not run.is_estimate:
        values["accepts_shared_device"] = run.accepts_shared_device
        values["device"] = run.requested_device.device if run.requested_device else run.requested_kind
    return values


def submission(values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
    """Read the arguments of `run_create`: the keys of a RunSpec and those about its place in the queue.

    Raises SpecError. Without a price in the request the device's own price is used.
    """
    spec = RunSpec.from_dict({name: value for name, value in values.items() if name not in QUEUE_KEYS})
    return {"spec": spec, **_placed(spec, values, user)}


def command_submission(name: object, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
    """Read the arguments of `run_create` for a registered command. Raises SpecError."""
    spec = command_spec(name, {name: value for name, value in values.items() if name not in QUEUE_KEYS})
    return {"spec": spec, **_placed(spec, values, user)}


def validation_submission(values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
    """Read the arguments of `run_create` for a validation. Raises SpecError."""
    spec = ValidationSpec.from_dict({name: value for name, value in values.items() if name not in QUEUE_KEYS})
    return {"spec": spec, **_placed(spec, values, user), "uses_device_price": False}  # it costs nothing to speak of


def _placed(
    spec: RunSpec | TuneSpec | ValidationSpec, values: dict[str, Any], user: User | AnonymousUser
) -> dict[str, Any]:
    device_class = _checked(values, "device_class", str, "")
    return {
        "place": placement_find(spec.device, device_class, user),
        "requested_by": user if user.is_authenticated else None,
        "priority": _checked(values, "priority", int, Run.Priority.NORMAL),
        "accepts_shared_device": _checked(values, "accepts_shared_device", bool, False),
        "uses_device_price": "price_per_hour_usd" not in values,
    }


def estimate_submission(values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
    """Read the arguments of `estimate_create`. Raises SpecError, also for fields of measurements only."""
    for name in NOT_OF_ESTIMATES:
        if name in values:
            raise SpecError(name, "an estimate uses no device; leave it out, or request kind measurement")
    spec = RunSpec.from_dict({name: value for name, value in values.items() if name not in ESTIMATE_KEYS})
    return {
        "spec": spec,
        "gpu": _checked(values, "gpu", str, ALL_GPUS),
        "what_to_change": _checked(values, "what_to_change", str, ""),
        "frontier": _sizes(values),
        "requested_by": user if user.is_authenticated else None,
        "priority": _checked(values, "priority", int, Run.Priority.NORMAL),
    }


def is_for_estimate(values: dict[str, Any]) -> bool:
    """Whether `kind` is estimate; the default is a measurement. Raises SpecError."""
    kind = _checked(values, "kind", str, Run.Kind.MEASUREMENT)
    if kind == Run.Kind.VALIDATION:
        raise SpecError("kind", "validations have settings of their own: start them at /api/v1/validations/")
    if kind not in REQUESTED_KINDS:
        raise SpecError("kind", f"must be one of {', '.join(REQUESTED_KINDS)}")
    if kind == Run.Kind.MEASUREMENT and "gpu" in values:
        raise SpecError("gpu", "is for estimates: add kind estimate, or name a device to measure on")
    for name in ("what_to_change", "frontier"):
        if kind == Run.Kind.MEASUREMENT and name in values:
            raise SpecError(name, "is for estimates: add kind estimate")
    return kind == Run.Kind.ESTIMATE


def _sizes(values: dict[str, Any]) -> list[int]:
    """Read the sizes of `frontier`; empty where there is none."""
    sizes = values.get("frontier", [])
    if not isinstance(sizes, list) or not all(type(size) is int for size in sizes):
        raise SpecError("frontier", "must be a list of whole numbers, such as [128, 256, 512]")
    return sizes


def _checked(values: dict[str, Any], name: str, kind: type[T], default: T) -> T:
    value = values.get(name, default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise SpecError(name, f"must be {_KINDS[kind]}")
    return value
