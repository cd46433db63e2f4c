"""JSON body of a request -> a stored run. Every refusal names its field."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from analysis.api.kinds import BY_KIND
from analysis.api.kinds.requests import checked
from analysis.http.errors import BadRequest
from analysis.http.strict_json import BadJsonError, strict_json
from analysis.models import PUBLISHED_KINDS, Run, RunKind
from analysis.runs.queue.placement import placement_of
from analysis.runs.services import run_create
from engine.errors import SpecError
from engine.kinds import asked

REQUESTED_KINDS = tuple(kind.value for kind in RunKind if not BY_KIND[kind].elsewhere)
"""What the body of a run may ask for; validations and commands have addresses of their own."""
DEFAULT_KIND = RunKind.MEASUREMENT


def json_object(request: HttpRequest) -> dict[str, Any]:
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
    return run_create(**BY_KIND[_requested_kind(body)].submission(_without(body, ("kind",)), user))


def run_cloned(run: Run, changes: dict[str, Any], user: User) -> Run:
    """Store a run with the request of another, with these changes, which may include the kind. Raises SpecError."""
    before = kind = BY_KIND[run.kind].kind_of_clone(run)
    values = BY_KIND[run.kind].body_of(run)
    if kind in REQUESTED_KINDS:
        kind, changes = _requested_kind({"kind": kind, **changes}), _without(changes, ("kind",))
    clones = BY_KIND[kind]
    if kind != before:
        # a device has its own price, whatever an estimate assumed
        assumed = () if asked(before).uses_device else ("price_per_hour_usd",)
        values = _without(values, (*clones.only_others, *assumed))
    arguments = clones.submission_like(run, {**values, **changes}, user)
    names_place = not {"device", "device_class"}.isdisjoint(changes)
    if run.needs_device and asked(kind).uses_device and not names_place:
        arguments["place"] = placement_of(run)  # by its id, as a device of another host may have the same name
    return run_create(**arguments)


def _requested_kind(values: dict[str, Any]) -> str:
    """Return the `kind`; the default is a measurement. Raises SpecError, also for fields that it does not have."""
    kind = checked(values, "kind", str, DEFAULT_KIND)
    if kind not in REQUESTED_KINDS:
        elsewhere = BY_KIND[kind].elsewhere if kind in dict(PUBLISHED_KINDS) else ""
        raise SpecError("kind", elsewhere or f"must be one of {', '.join(REQUESTED_KINDS)}")
    for name, why in BY_KIND[kind].refused.items():
        if name in values:
            raise SpecError(name, why)
    return kind


def _without(values: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}
