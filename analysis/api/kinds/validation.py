"""Requests of validations."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser, User

from analysis.api.kinds.requests import VERSION_OF_FORM, Components, Requests, placed, settings_in
from engine.validation.spec import ValidationSpec
from engine.validation.verdict import ValidationResult, Verdict


class Validation(Requests):
    """A body has the keys of a ValidationSpec, and those about its place in the queue."""

    views = "analysis.api.v1.run.validations"
    spec_name = ValidationSpec.__name__
    result_type, result_name = ValidationResult, ValidationResult.__name__
    elsewhere = "validations have settings of their own: start them at /api/v1/validations/"

    def described_result(self) -> Components:
        text = {"type": "string", "description": "The claim with its verdict."}
        added = {
            "schema": VERSION_OF_FORM,
            "verdict": {"enum": [each.value for each in Verdict], "description": "Failed where one check failed."},
            "verdict_text": {"type": "string", "description": "The verdict in a sentence."},
        }
        return {"Check": {"properties": {"text": text}}, "ValidationResult": {"properties": added}}

    def submission(self, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
        arguments = placed(ValidationSpec.from_dict(settings_in(values)), values, user)
        return {**arguments, "uses_device_price": False}  # a validation takes seconds, so no cost is shown
