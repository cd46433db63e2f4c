"""What a request asks for: JSON body -> what `services.run_create` takes. Every refusal names its field."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest

from analysis.api.errors import BadRequest
from analysis.models import Run
from analysis.placement import placement_find
from analysis.services.estimates import ALL_GPUS
from engine.errors import SpecError
from engine.spec import RunSpec

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

QUEUE_KEYS = ("device_class", "priority", "accepts_shared_device")
"""What a request may hold beside the keys of a RunSpec."""
ESTIMATE_KEYS = ("gpu", "priority")

_KINDS = {str: "text", int: "a whole number", bool: "true or false"}


def json_object(request: HttpRequest) -> dict[str, Any]:
    """The body as an object, with the contract's words for what is wrong with it."""
    if not request.body.strip():
        raise BadRequest("Request body is required")
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError) as exc:
        raise BadRequest("Request body must be valid JSON") from exc
    if not isinstance(body, dict):
        raise BadRequest("Request body must be a JSON object")
    return body


def submission(asked: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
    """The arguments of `run_create`: the keys of a RunSpec and those about its place in the queue.

    Raises SpecError. The device's own price stands in where the request names none.
    """
    device_class = _checked(asked, "device_class", str, "")
    spec = RunSpec.from_dict({name: value for name, value in asked.items() if name not in QUEUE_KEYS})
    return {
        "spec": spec,
        "place": placement_find(spec.device, device_class, user),
        "requested_by": user if user.is_authenticated else None,
        "priority": _checked(asked, "priority", int, Run.Priority.NORMAL),
        "accepts_shared_device": _checked(asked, "accepts_shared_device", bool, False),
        "uses_device_price": "price_per_hour_usd" not in asked,
    }


def estimate_submission(asked: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
    """The arguments of `estimate_create`. Raises SpecError, also for what only a measurement has."""
    for name in ("device", "device_class", "accepts_shared_device", "time_budget_seconds"):
        if name in asked:
            raise SpecError(name, "an estimate uses no device here; leave it out, or ask for kind measurement")
    spec = RunSpec.from_dict({name: value for name, value in asked.items() if name not in ESTIMATE_KEYS})
    return {
        "spec": spec,
        "gpu": _checked(asked, "gpu", str, ALL_GPUS),
        "requested_by": user if user.is_authenticated else None,
        "priority": _checked(asked, "priority", int, Run.Priority.NORMAL),
    }


def asks_for_estimate(asked: dict[str, Any]) -> bool:
    """What `kind` says; without it a run is a measurement. Raises SpecError."""
    kind = _checked(asked, "kind", str, Run.Kind.MEASUREMENT)
    if kind not in Run.Kind.values:
        raise SpecError("kind", f"must be one of {', '.join(Run.Kind.values)}")
    if kind == Run.Kind.MEASUREMENT and "gpu" in asked:
        raise SpecError("gpu", "is for estimates: add kind estimate, or name a device to measure on")
    return kind == Run.Kind.ESTIMATE


def _checked(asked: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = asked.get(name, default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise SpecError(name, f"must be {_KINDS[kind]}")
    return value
