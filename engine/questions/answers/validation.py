"""PURE: the checks of a validation, made from its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...errors import SpecError
from ..documents.stored import StoredSpec
from ..documents.validated import Validated
from ..validation.spec import BACKWARD, ValidationSpec, reference_of
from ..validation.verdict import (
    COMPILES,
    Check,
    StepFigures,
    Verdict,
    check_of_compile_time,
    check_of_compiled_memory,
    check_of_gradients,
    check_of_memory_ratio,
    check_of_speed,
    not_checked,
)
from .document import read_facts
from .impossible import Impossible, refuse
from .limits import LEAST_STEP_SECONDS, SLACK_SECONDS
from .physics import impossible_device

Steps = Mapping[str, StepFigures]
_STEPS = {BACKWARD: ("forward", "forward_and_backward")}
_COMPILE_STEPS = ("eager", "compiled")
_AGAINST_EAGER = "those of eager mode"
_FINDING_MOST = 330
"""The name of an error, and the first 200 letters of its first line."""


def answer_of_validation(document: Mapping[str, Any]) -> Validated:
    """Return the validation with its checks made from its figures. Raises SpecError and ImpossibleFiguresError.

    The agreement of gradients and why a check was not made follow from no figure: they are as the run says.
    """
    stored = read_facts(Validated, document)
    spec = ValidationSpec.from_dict(stored.spec.to_dict())
    for name in stored.steps:
        if name not in _STEPS.get(spec.check, _COMPILE_STEPS):
            raise SpecError(f"steps.{name}"[:200], "is unknown")
    refuse(_impossible(stored, spec))
    said = {check.name: check for check in stored.checks}
    checks = tuple(_check(name, said.get(name), spec, stored.steps) for name in _names(spec, stored.steps))
    return replace(stored, spec=StoredSpec(spec.to_dict()), checks=checks)


def _impossible(result: Validated, spec: ValidationSpec) -> Iterator[Impossible]:
    yield from impossible_device(result.device, spec)
    for check in result.checks:
        if check.name == "gradients" and (check.measured or 0.0) < 0:
            yield Impossible("checks.gradients.measured", check.measured, 0)
    spent = 0.0
    for name, figures in result.steps.items():
        peak, least = figures.peak_bytes, min(figures.step_seconds, default=1.0)
        if peak is not None and not 0 < peak <= (result.device.limit_bytes or result.device.capacity_bytes):
            yield Impossible(f"steps.{name}.peak_bytes", peak, result.device.limit_bytes)
        if least < LEAST_STEP_SECONDS:
            yield Impossible(f"steps.{name}.step_seconds", least, LEAST_STEP_SECONDS)
        if figures.compile_seconds is not None and (name != "compiled" or figures.compile_seconds < 0):
            yield Impossible(f"steps.{name}.compile_seconds", figures.compile_seconds, None)
        spent += sum(figures.step_seconds) + (figures.compile_seconds or 0.0)
    if spent > result.total_seconds + SLACK_SECONDS:
        yield Impossible("total_seconds", result.total_seconds, spent)


def _names(spec: ValidationSpec, steps: Steps) -> tuple[str, ...]:
    """Return the checks that the figures allow and therefore require, in the order in which a run makes them."""
    if spec.check == BACKWARD:
        return ("memory_ratio", "gradients")
    return ("compiles", "speed", "memory", "gradients") if "compiled" in steps else ("compiles",)


def _check(name: str, said: Check | None, spec: ValidationSpec, steps: Steps) -> Check:
    if name == "gradients":
        return _check_of_gradients(said, spec)
    if name == "memory_ratio":
        alone, both = (steps[step].peak_bytes if step in steps else None for step in _STEPS[BACKWARD])
        if not alone or not both:
            return not_checked(name, "", "the run ended before it")
        return check_of_memory_ratio(alone, both)
    eager, compiled = (steps.get(step, StepFigures()) for step in _COMPILE_STEPS)
    if name == "compiles" and "compiled" not in steps:
        return _without_figures(name, COMPILES, said)
    if name == "compiles":
        return check_of_compile_time(compiled)
    makes = {"speed": check_of_speed, "memory": check_of_compiled_memory}
    return makes[name](eager, compiled)


def _check_of_gradients(said: Check | None, spec: ValidationSpec) -> Check:
    is_backward = spec.check == BACKWARD
    if said is None or said.verdict is Verdict.NOT_CHECKED:
        reference = reference_of(spec.precision) if is_backward else _AGAINST_EAGER
        return _without_figures("gradients", f"the gradients of {spec.precision} agree with {reference}", said)
    precision, against = (spec.precision, "") if is_backward else (f"compiled {spec.precision}", _AGAINST_EAGER)
    return check_of_gradients(precision, said.measured, spec.tolerance, against)


def _without_figures(name: str, claim: str, said: Check | None) -> Check:
    """Return a check that was not made, or a failed compilation, with the reason in the run's words."""
    why = said.finding.partition("\n")[0][:_FINDING_MOST] if said is not None else "the run ended before it"
    is_failed = name == "compiles" and said is not None and said.verdict is Verdict.FAILED
    return replace(not_checked(name, claim, why), verdict=Verdict.FAILED if is_failed else Verdict.NOT_CHECKED)
