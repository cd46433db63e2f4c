"""A validation as its page shows it: the verdicts as labels, and the steps that the checks rest on."""

from __future__ import annotations

from collections import Counter
from typing import Any

from analysis.models import Run
from analysis.presentation.chip import Chip
from engine.documents.validated import Validated
from engine.text.units import sentence_case
from engine.validation.verdict import Verdict

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


def verdict_chip(run: Run) -> Chip | None:
    """Return the verdict of a validation that has ended with one; None for any other run."""
    return CHIPS[Verdict(run.verdict)] if run.verdict else None
