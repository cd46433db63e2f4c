"""A validation in words: a check on a device that what is measured is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.models import Run
from analysis.presentation.kinds.presentation import Presentation, endings_of
from analysis.presentation.labels import describe_settings, model_name
from analysis.presentation.unreadable import read_stored
from engine.documents.validated import Validated
from engine.progress import VALIDATING_PHASES
from engine.validation.spec import SHORT_NAMES

_VERDICTS = {"passed": "✓ passed", "warning": "▲ warning", "failed": "✕ failed"}


class Validation(Presentation):
    """It ends with a verdict, and finds no batch size."""

    mark = "validation"
    not_compared = "a validation, which has no batch size to compare"
    endings = endings_of("validation", "verdict", failed="the validation could not be made")

    def found(self, run: Run) -> str:
        return _VERDICTS.get(run.verdict, "finished")

    def answer(self, run: Run) -> str:
        return read_stored(Validated.from_dict, run.result).text

    def doing(self, run: Run) -> str:
        return f"Validating {model_name(run.model)}"

    def phases(self, run: Run) -> tuple[str, ...]:
        return VALIDATING_PHASES[run.spec["check"]]

    def settings(self, spec: Mapping[str, Any]) -> list[str]:
        check = SHORT_NAMES.get(spec["check"], str(spec["check"]))  # one that is no longer offered keeps its name
        return describe_settings(spec, f"{check}, batch {spec['batch_size']}")
