"""PURE: the checks of a validation and the verdict that follows. Every threshold of a verdict stands here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from statistics import median, quantiles
from typing import Any

from ...facts.result import DeviceFacts
from ...settings.spec import SCHEMA
from ...text.units import format_bytes
from .spec import BACKWARD, SHORT_NAMES, ValidationSpec, reference_of

RATIO_FAILS_BELOW, RATIO_LOW, RATIO_HIGH = 1.5, 2.0, 3.0
"""Expected and impossible ratios of the memory of forward + backward to that of the forward pass alone."""
COMPILED_MEMORY_FACTOR = 1.05
"""A compiled step may hold this many times the memory of an eager one."""


class Verdict(StrEnum):
    """How a check ended. `not_checked`: it was not reached, or cannot be made of this model."""

    PASSED = "passed"
    WARNING = "warning"
    FAILED = "failed"
    NOT_CHECKED = "not_checked"

    @property
    def label(self) -> str:
        return "not checked" if self is Verdict.NOT_CHECKED else self.value


@dataclass(frozen=True, slots=True)
class Check:
    """One claim with its verdict. `measured` is held against `low` and `high`; None where there is no such bound."""

    name: str
    claim: str
    verdict: Verdict
    finding: str
    measured: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def text(self) -> str:
        """Write "the gradients of bf16 agree with fp32 within 2 %: passed"."""
        return f"{self.claim}: {self.verdict.label}"


@dataclass(frozen=True, slots=True)
class StepFigures:
    """Memory and time of one kind of step, measured."""

    peak_bytes: int | None = None
    step_seconds: tuple[float, ...] = ()
    compile_seconds: float | None = None

    @property
    def median_seconds(self) -> float | None:
        return median(self.step_seconds) if self.step_seconds else None

    @property
    def half(self) -> tuple[float, float] | None:
        """Return what the middle half of the steps took, in seconds; None of fewer than 3 steps."""
        if len(self.step_seconds) < 3:
            return None
        low, _, high = quantiles(self.step_seconds, n=4, method="inclusive")
        return low, high


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """The answer of a validation: its checks, and the figures that they rest on by kind of step."""

    spec: ValidationSpec
    device: DeviceFacts
    checks: tuple[Check, ...]
    steps: dict[str, StepFigures]
    environment: dict[str, Any]
    total_seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        return overall([check.verdict for check in self.checks])

    @property
    def name(self) -> str:
        return SHORT_NAMES.get(self.spec.check, "validation")  # a stored one may be of a check that is gone

    @property
    def text(self) -> str:
        return describe_verdict(f"the {self.name}" if self.spec.check == BACKWARD else self.name, self.checks)

    def to_dict(self) -> dict[str, Any]:
        words = {"verdict": self.verdict.value, "verdict_text": self.text}
        checks = [{**asdict(check), "text": check.text} for check in self.checks]
        whole = {"spec": self.spec.to_dict(), "device": self.device.to_dict(), "checks": checks}
        return {"schema": SCHEMA, **asdict(self), **whole, **words}


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    if Verdict.FAILED in verdicts:
        return Verdict.FAILED
    return Verdict.PASSED if verdicts and set(verdicts) == {Verdict.PASSED} else Verdict.WARNING


def describe_verdict(name: str, checks: Sequence[Check]) -> str:
    """Write "The validation of the backward pass passed: 2 of 2 checks." or name what did not pass."""
    passed = sum(check.verdict is Verdict.PASSED for check in checks)
    verb = {Verdict.PASSED: "passed", Verdict.FAILED: "failed", Verdict.WARNING: "passed with warnings"}
    said = verb[overall([check.verdict for check in checks])]
    return f"The validation of {name} {said}: {passed} of {len(checks)} checks passed."


def check_of_gradients(precision: str, difference: float | None, tolerance: float, against: str = "") -> Check:
    """Hold the difference of the gradients against its tolerance; None: they are not finite."""
    reference = against or reference_of(precision)
    claim = f"the gradients of {precision} agree with {reference} within {_percent(tolerance)}"
    if difference is None or not math.isfinite(difference):
        return Check("gradients", claim, Verdict.FAILED, "they are not finite numbers", None, None, tolerance)
    verdict = Verdict.PASSED if difference <= tolerance else Verdict.FAILED
    return Check("gradients", claim, verdict, f"they differ by {_percent(difference)}", difference, None, tolerance)


def not_checked(name: str, claim: str, reason: str) -> Check:
    return Check(name, claim, Verdict.NOT_CHECKED, reason)


UNUSUAL = "; unusual, yet the backward pass is in the figure: batch sizes found with it hold"
"""Follows from a warning of the memory ratio; earlier engines left it out."""


def check_of_memory_ratio(forward_bytes: int, both_bytes: int) -> Check:
    """Hold the memory of forward + backward against that of the forward pass: a finder must count both."""
    ratio = both_bytes / forward_bytes
    claim = f"a step with its backward pass holds {RATIO_LOW:g} to {RATIO_HIGH:g} times the memory of the forward pass"
    finding = f"{format_bytes(both_bytes)} against {format_bytes(forward_bytes)}: {ratio:.2f} times"
    verdict = Verdict.PASSED if RATIO_LOW <= ratio <= RATIO_HIGH else Verdict.WARNING
    if ratio < RATIO_FAILS_BELOW:
        verdict = Verdict.FAILED
        finding += f"; below {RATIO_FAILS_BELOW:g} the backward pass cannot be in the figure"
    elif verdict is Verdict.WARNING:
        finding += UNUSUAL
    return Check("memory_ratio", claim, verdict, finding, ratio, RATIO_LOW, RATIO_HIGH)


COMPILES = "torch.compile compiles this training"


def check_of_compile_time(compiled: StepFigures) -> Check:
    return Check("compiles", COMPILES, Verdict.PASSED, f"it took {compiled.compile_seconds or 0.0:.1f} s")


def check_of_speed(eager: StepFigures, compiled: StepFigures) -> Check:
    """Say faster only where the middle halves of the step times do not overlap."""
    claim = "a compiled step is faster than an eager one"
    before, after = eager.median_seconds, compiled.median_seconds
    halves = eager.half, compiled.half
    if before is None or after is None or halves[0] is None or halves[1] is None:
        return not_checked("speed", claim, "too few steps were timed")
    ratio = before / after
    finding = f"{_times(after, halves[1])} against {_times(before, halves[0])}: {ratio:.2f} times as fast"
    if halves[1][1] < halves[0][0]:
        pays = math.ceil((compiled.compile_seconds or 0.0) / (before - after))
        return Check("speed", claim, Verdict.PASSED, f"{finding}; compiling pays after {pays:,} steps", ratio, 1.0)
    why = "slower" if halves[1][0] > halves[0][1] else "the middle halves of the times overlap"
    return Check("speed", claim, Verdict.WARNING, f"{finding} ({why}); compiling does not pay here", ratio, 1.0)


def check_of_compiled_memory(eager: StepFigures, compiled: StepFigures) -> Check:
    claim = f"a compiled step holds at most {COMPILED_MEMORY_FACTOR:g} times the memory of an eager one"
    if not eager.peak_bytes or not compiled.peak_bytes:
        return not_checked("memory", claim, "the device does not report its peak memory")
    ratio = compiled.peak_bytes / eager.peak_bytes
    finding = f"{format_bytes(compiled.peak_bytes)} against {format_bytes(eager.peak_bytes)}: {ratio:.2f} times"
    verdict = Verdict.PASSED if ratio <= COMPILED_MEMORY_FACTOR else Verdict.WARNING
    return Check("memory", claim, verdict, finding, ratio, None, COMPILED_MEMORY_FACTOR)


def _times(middle: float, half: tuple[float, float]) -> str:
    return f"{middle:.3g} s [{half[0]:.3g}, {half[1]:.3g}]"


def _percent(fraction: float) -> str:
    """Write "2 %", "0.38 %", "0.00002 %"."""
    return f"{100 * fraction:.3g} %" if fraction >= 1e-6 or fraction == 0 else "less than 0.0001 %"
