"""Requests of validations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysis.api.kinds.requests import Requests, placed, settings_in
from engine.validation.spec import ValidationSpec

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class Validation(Requests):
    """A body has the keys of a ValidationSpec, and those about its place in the queue."""

    elsewhere = "validations have settings of their own: start them at /api/v1/validations/"

    def submission(self, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
        arguments = placed(ValidationSpec.from_dict(settings_in(values)), values, user)
        return {**arguments, "uses_device_price": False}  # a validation takes seconds, so no cost is shown
