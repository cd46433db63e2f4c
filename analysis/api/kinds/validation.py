"""Requests of validations."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser, User

from analysis.api.kinds.members import Queued
from analysis.api.kinds.requests import Requests, placed, settings_in
from engine.questions.validation.spec import ValidationSpec
from engine.questions.validation.verdict import ValidationResult


class Validation(Requests):
    takes = (ValidationSpec, Queued)
    spec_name = ValidationSpec.__name__
    result_type, result_name = ValidationResult, ValidationResult.__name__
    elsewhere = "validations have settings of their own: start them at /api/v1/validations/"

    def submission(self, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
        arguments = placed(ValidationSpec.from_dict(settings_in(values)), values, user)
        return {**arguments, "uses_device_price": False}  # a validation takes seconds, so no cost is shown
