"""What a request asks for: JSON body -> RunSpec and Device. Every refusal names the field and what is allowed."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest

from analysis.api.errors import BadRequest
from analysis.devices import device_choose
from analysis.models import Device
from engine.spec import RunSpec


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


def spec_and_device(asked: dict[str, Any]) -> tuple[RunSpec, Device]:
    """Raises SpecError. The device's own price stands in where the request names none."""
    spec = RunSpec.from_dict(asked)
    device = device_choose(spec.device)
    if "price_per_hour_usd" not in asked and device.price_per_hour_usd is not None:
        spec = RunSpec.from_dict({**asked, "price_per_hour_usd": device.price_per_hour_usd})
    return spec, device
