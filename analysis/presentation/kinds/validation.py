"""A validation in words: a check on a device that what is measured is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from analysis.models import Run
from analysis.presentation.kinds.presentation import Presentation, endings_of
from analysis.presentation.labels import Chip, describe_settings, model_name
from analysis.presentation.unreadable import read_stored
from engine.facts.progress import VALIDATING_PHASES
from engine.questions.documents.validated import Validated
from engine.questions.validation.spec import SHORT_NAMES
from engine.questions.validation.verdict import Verdict
from engine.text.units import sentence_case

_VERDICTS = {"passed": "✓ passed", "warning": "▲ warning", "failed": "✕ failed"}
CHIPS = {
    Verdict.PASSED: Chip("●", "passed", "chip-ok"),
    Verdict.WARNING: Chip("▲", "warning", "chip-run"),
    Verdict.FAILED: Chip("✕", "failed", "chip-bad"),
    Verdict.NOT_CHECKED: Chip("○", "not checked", "chip-plain"),
}
_NOT_PASSED = {Verdict.FAILED: "failed", Verdict.WARNING: "warned", Verdict.NOT_CHECKED: "not checked"}
_STEPS = {
    "forward": "Forward pass alone",
    "forward_and_backward": "Forward and backward pass",
    "eager": "Training step, eager",
    "compiled": "Training step, compiled",
}


class Validation(Presentation):
    mark = "validation"
    not_compared = "a validation, which has no batch size to compare"
    endings = endings_of("validation", "verdict", failed="the validation could not be made")

    def found(self, run: Run) -> str:
        return _VERDICTS.get(run.verdict, "finished")

    def answer(self, run: Run) -> str:
        return read_stored(Validated.from_dict, run.result).text

    def chip(self, run: Run) -> Chip | None:
        return CHIPS[Verdict(run.verdict)] if run.verdict else None

    def doing(self, run: Run) -> str:
        return f"Validating {model_name(run.model)}"

    def phases(self, run: Run) -> tuple[str, ...]:
        return VALIDATING_PHASES[run.spec["check"]]

    def settings(self, spec: Mapping[str, Any]) -> list[str]:
        check = SHORT_NAMES.get(spec["check"], str(spec["check"]))  # a check that is no longer offered keeps its name
        return describe_settings(spec, f"{check}, batch {spec['batch_size']}")


def headline(validation: Validated) -> str:
    """Write "backward pass: 1 of 2 checks passed, 1 warned." as it stands after the name of the model."""
    counts = Counter(check.verdict for check in validation.checks)
    said = f"{counts[Verdict.PASSED]} of {len(validation.checks)} checks passed"
    others = ", ".join(f"{counts[verdict]} {words}" for verdict, words in _NOT_PASSED.items() if counts[verdict])
    return f"{validation.name}: {said}{others and f', {others}'}."


def validation_shown(validation: Validated) -> dict[str, Any]:
    return {
        "validation": validation,
        "headline": headline(validation),
        "verdict": CHIPS[validation.verdict],
        "checks": [(sentence_case(each.claim), CHIPS[each.verdict], each.finding) for each in validation.checks],
        "steps": [(_STEPS.get(name, name), each) for name, each in validation.steps.items()],
    }
