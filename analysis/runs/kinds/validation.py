"""A validation: whether what is measured is right. It finds no batch size."""

from __future__ import annotations

from analysis.models import Run
from analysis.runs.columns.result_columns import validation_columns
from analysis.runs.kinds.rules import Rules
from engine.cli.exit_status import exit_status_of_validation
from engine.questions.documents.validated import Validated
from engine.questions.validation.spec import ValidationSpec


class Validation(Rules):
    spec_types = (ValidationSpec,)
    columns = staticmethod(validation_columns)
    copied = ("precision", "optimizer")

    def exit_status(self, found: Validated) -> int:
        return exit_status_of_validation(found.verdict)

    def is_shareable(self, run: Run) -> bool:
        return False
