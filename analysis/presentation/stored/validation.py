"""A stored validation, read for its page: its checks, the figures they rest on, and the verdict as a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.models import Run
from analysis.presentation.chip import Chip
from analysis.presentation.stored.unreadable import read_stored
from engine.documents.validated import Validated
from engine.results.result import DeviceFacts
from engine.text.units import sentence_case
from engine.validation.spec import SHORT_NAMES
from engine.validation.verdict import Check, Verdict

_CHIPS = {
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


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One check of the table."""

    check: Check
    chip: Chip

    @property
    def claim(self) -> str:
        return sentence_case(self.check.claim)


@dataclass(frozen=True, slots=True)
class StepRow:
    """Memory and time of one kind of step. None: not measured."""

    name: str
    peak_bytes: int | None
    median_seconds: float | None
    half: tuple[float, float] | None
    compile_seconds: float | None


@dataclass(frozen=True, slots=True)
class StoredValidation:
    """The result of a finished validation."""

    name: str
    text: str
    verdict: Chip
    checks: tuple[CheckRow, ...]
    steps: tuple[StepRow, ...]
    device: DeviceFacts
    environment: Mapping[str, Any]
    total_seconds: float

    @property
    def headline(self) -> str:
        """Write "backward pass: 1 of 2 checks passed, 1 warned." as it stands after the name of the model."""
        counts = Counter(row.check.verdict for row in self.checks)
        said = f"{counts[Verdict.PASSED]} of {len(self.checks)} checks passed"
        others = ", ".join(f"{counts[verdict]} {words}" for verdict, words in _NOT_PASSED.items() if counts[verdict])
        return f"{self.name}: {said}{others and f', {others}'}."


def read_validation(result: Mapping[str, Any]) -> StoredValidation:
    """Read the result of a finished validation. Raises UnreadableError."""
    return read_stored("result", _read_validation, result)


def _read_validation(result: Mapping[str, Any]) -> StoredValidation:
    read = Validated.from_dict(result)
    return StoredValidation(
        name=SHORT_NAMES.get(read.spec.get("check", ""), "validation"),
        text=read.verdict_text,
        verdict=_CHIPS[read.verdict],
        checks=tuple(CheckRow(check, _CHIPS[check.verdict]) for check in read.checks),
        steps=tuple(
            StepRow(_STEPS.get(name, name), each.peak_bytes, each.median_seconds, each.half, each.compile_seconds)
            for name, each in read.steps.items()
        ),
        device=read.device,
        environment=read.environment,
        total_seconds=read.total_seconds,
    )


def verdict_chip(run: Run) -> Chip | None:
    """Return the verdict of a validation that has ended with one; None for any other run."""
    return _CHIPS[Verdict(run.verdict)] if run.verdict else None
