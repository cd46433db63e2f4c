"""PURE: decides the checks of a validation again from its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from ..documents.validated import Validated
from ..errors import SpecError
from ..validation.spec import BACKWARD, ValidationSpec, reference_of
from ..validation.verdict import (
    COMPILES,
    UNUSUAL,
    Check,
    StepFigures,
    ValidationResult,
    Verdict,
    check_of_compile_time,
    check_of_compiled_memory,
    check_of_gradients,
    check_of_memory_ratio,
    check_of_speed,
)
from .contradiction import Contradiction, differences
from .document import read_claims
from .limits import LEAST_STEP_SECONDS, SLACK_SECONDS
from .physics import impossible_device

_STEPS = {BACKWARD: ("forward", "forward_and_backward")}
_COMPILE_STEPS = ("eager", "compiled")
_AGAINST_EAGER = "those of eager mode"
_FINDING_MOST = 330
"""The name of an error, and the first 200 letters of its first line."""


def contradictions_of_validation(document: Mapping[str, Any]) -> list[Contradiction]:
    """List what a validation claims beyond its figures. Raises SpecError for a malformed document."""
    stored, untrue = read_claims(Validated, document)
    result = _of_today(stored)
    wrong = [*_impossible(result)]
    if wrong:
        return [*untrue, *wrong]
    wrong = untrue
    seen: set[str] = set()
    for number, check in enumerate(result.checks):
        path = f"checks[{number}]"
        if check.name in seen:
            wrong.append(Contradiction(f"{path}.name", check.name, "one check of each name"))
        seen.add(check.name)
        wrong += _untrue(path, check, result)
    wrong += differences("verdict", stored.verdict, result.verdict)
    wrong += differences("verdict_text", stored.verdict_text, result.text)
    missing = sorted(_names(result) - seen)
    if missing:  # without a failed check the rest would pass
        wrong.append(Contradiction("checks", sorted(seen), sorted(_names(result))))
    return wrong


def _of_today(stored: Validated) -> ValidationResult:
    """Return the figures with their spec. Raises SpecError where one of them is not as it should be."""
    spec = ValidationSpec.from_dict(stored.spec.to_dict())
    for name in stored.steps:
        if name not in _STEPS.get(spec.check, _COMPILE_STEPS):
            raise SpecError(f"steps.{name}"[:200], "is unknown")
    return ValidationResult(spec, stored.device, stored.checks, stored.steps, stored.environment, stored.total_seconds)


def _impossible(result: ValidationResult) -> Iterator[Contradiction]:
    yield from impossible_device(result.device, result.spec)
    spent = 0.0
    for name, figures in result.steps.items():
        peak, least = figures.peak_bytes, min(figures.step_seconds, default=1.0)
        if peak is not None and not 0 < peak <= (result.device.limit_bytes or result.device.capacity_bytes):
            yield Contradiction(f"steps.{name}.peak_bytes", peak, result.device.limit_bytes)
        if least < LEAST_STEP_SECONDS:
            yield Contradiction(f"steps.{name}.step_seconds", least, LEAST_STEP_SECONDS)
        if figures.compile_seconds is not None and (name != "compiled" or figures.compile_seconds < 0):
            yield Contradiction(f"steps.{name}.compile_seconds", figures.compile_seconds, None)
        spent += sum(figures.step_seconds) + (figures.compile_seconds or 0.0)
    if spent > result.total_seconds + SLACK_SECONDS:
        yield Contradiction("total_seconds", result.total_seconds, spent)


def _names(result: ValidationResult) -> set[str]:
    """Return the checks that the figures allow and therefore require."""
    if result.spec.check == BACKWARD:
        return {"memory_ratio", "gradients"}
    compiled = {"compiles", "speed", "memory", "gradients"}
    return compiled if "compiled" in result.steps else {"compiles"}


def _untrue(path: str, check: Check, result: ValidationResult) -> Iterator[Contradiction]:
    """Yield what a check claims against its figures. One that was not made says why, and claims nothing."""
    if check.name not in _names(result):
        yield Contradiction(f"{path}.name", check.name, sorted(_names(result)))
        return
    does_not_compile = check.name == "compiles" and "compiled" not in result.steps
    is_open = check.verdict is Verdict.NOT_CHECKED and (check.name == "gradients" or does_not_compile)
    if is_open or (does_not_compile and check.verdict is Verdict.FAILED):
        stated = replace(check, claim=_claim_without_figures(check, result.spec), measured=None, low=None, high=None)
        yield from differences(path, asdict(check), asdict(stated), may_claim_less=False)
        if "\n" in check.finding or len(check.finding) > _FINDING_MOST:
            yield Contradiction(f"{path}.finding", check.finding[:_FINDING_MOST], f"a line of at most {_FINDING_MOST}")
        return
    if check.name == "gradients" and (check.measured or 0.0) < 0:
        yield Contradiction(f"{path}.measured", check.measured, 0)
    yield from differences(path, asdict(check), asdict(_again(check, result)), may_claim_less=False)


def _claim_without_figures(check: Check, spec: ValidationSpec) -> str:
    """Return the claim of a check that was not made: it names no tolerance."""
    if check.name == "compiles":
        return COMPILES
    reference = reference_of(spec.precision) if spec.check == BACKWARD else _AGAINST_EAGER
    return f"the gradients of {spec.precision} agree with {reference}"


def _again(check: Check, result: ValidationResult) -> Check:
    spec, steps = result.spec, result.steps
    if check.name == "gradients":
        compiled = spec.check != BACKWARD
        precision, against = (f"compiled {spec.precision}", _AGAINST_EAGER) if compiled else (spec.precision, "")
        return check_of_gradients(precision, check.measured, spec.tolerance, against)
    if check.name == "memory_ratio":
        alone, both = (steps[name].peak_bytes if name in steps else None for name in _STEPS[BACKWARD])
        if not alone or not both:
            return Check(*("",) * 2, Verdict.NOT_CHECKED, "")
        again = check_of_memory_ratio(alone, both)
        is_of_today = check.finding.endswith(UNUSUAL)
        return again if is_of_today else replace(again, finding=again.finding.removesuffix(UNUSUAL))
    eager, compiled_step = (steps.get(name, StepFigures()) for name in _COMPILE_STEPS)
    if check.name == "compiles" and "compiled" not in steps:
        return Check("compiles", COMPILES, Verdict.NOT_CHECKED, check.finding)
    if check.name == "compiles":
        return check_of_compile_time(compiled_step)
    makes = {"speed": check_of_speed, "memory": check_of_compiled_memory}
    return makes[check.name](eager, compiled_step)
