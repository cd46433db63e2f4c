"""What to change so that a batch size fits: the estimate of a run's own training, and the runs that measure changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from django.contrib.auth.models import User
from django.db import transaction

from analysis.models import CPU, Device, Run, State
from analysis.runs.earlier.reuse import (
    NOT_MEASURED,
    classes_of,
    newest_like,
    part_without,
    runs_with_todays_software,
    stored_spec,
)
from analysis.runs.gpu_catalog import gpu_of
from analysis.runs.kinds import rules_of
from analysis.runs.queue.create import run_create
from analysis.runs.queue.placement import Placement
from engine.errors import SpecError
from engine.estimate.frontier import specs_of
from engine.estimate.spec import EstimateSpec
from engine.estimate.what_to_change import Variant, WhatToChange
from engine.gate.compare import speed_of
from engine.questions.documents.measured import Measured as MeasuredResult
from engine.questions.kinds import read_result
from engine.settings.spec import DEFAULTS, RunSpec

MEASURED_MAX = 20
"""Runs that one request may start."""
# what is searched, and what it is compared with, changes neither the largest batch size nor the speed of a size
_NOT_OF_SETTINGS = (
    *NOT_MEASURED,
    "current_batch_size",
    "check_batch_size",
    "start_batch_size",
    "soak_steps",
    "compare_speed",
)
_ACCUMULATION = "accumulation_steps"
_BUDGET_SECONDS = DEFAULTS["time_budget_seconds"]
_Of = TypeVar("_Of")


def changes_estimate(*, run: Run, batch_size: int, scope: str, requested_by: User) -> Run:
    """Queue the estimate of what to change so that this batch size fits where the run was. Raises SpecError."""
    place = rules_of(run).place(run)
    if place is None:
        raise SpecError("run", "its device is not in the catalogue of cards, or it was of no single one")
    spec = replace(
        run.run_spec,
        device="auto",
        check_batch_size=None,
        current_batch_size=batch_size,
        memory_limit_bytes=place.memory_limit_bytes,
    )
    return run_create(spec=EstimateSpec(spec, place.gpu, scope), requested_by=requested_by)


def changes_found(run: Run) -> WhatToChange | None:
    return read_result(run.result).what_to_change if run.result else None


def newest_changes(run: Run) -> Run | None:
    place, spec = rules_of(run).place(run), stored_spec(run)
    if place is None or spec is None:
        return None
    made = Run.objects.answering().filter(state=State.FINISHED, model=run.model, gpu=place.gpu).exclude(pk=run.pk)
    return newest_like(made, spec, _NOT_OF_SETTINGS)


def changes_measure(*, run: Run, labels: Collection[str], place: Placement, requested_by: User) -> list[Run]:
    """Queue a measurement of each of these variants of an estimate: all of them or, with SpecError, none."""
    found = changes_found(run)
    if found is None:
        raise SpecError("run", f"run {run.pk} has not found out what to change")
    wanted = set(labels)
    if not wanted:
        raise SpecError("variants", "name at least one")
    if len(wanted) > MEASURED_MAX:
        raise SpecError("variants", f"at most {MEASURED_MAX} at once")
    offered = {variant.label: variant for variant in found.variants}
    if unknown := sorted(wanted - set(offered)):
        raise SpecError("variants", f"{unknown[0][:80]!r} is not offered; one of {', '.join(offered)}")
    spec = run.run_spec
    with transaction.atomic():
        return [
            _measurement(spec, variant, place, requested_by) for label, variant in offered.items() if label in wanted
        ]


def _measurement(spec: RunSpec, variant: Variant, place: Placement, requested_by: User) -> Run:
    try:
        return run_create(spec=spec_of(spec, variant), place=place, requested_by=requested_by, uses_device_price=True)
    except SpecError as error:
        error.args = (f"{error} ({variant.label})",)
        raise


def spec_of(spec: RunSpec, variant: Variant) -> RunSpec:
    """Return the spec that measures a variant of a training. Raises SpecError."""
    changes = dict(variant.settings)
    if variant.micro_batch_size is not None:
        pieces = variant.batch_size // variant.micro_batch_size
        changes[_ACCUMULATION] = getattr(spec, _ACCUMULATION) * pieces
    size = variant.micro_batch_size or variant.batch_size
    return replace(spec, device="auto", current_batch_size=size, time_budget_seconds=_BUDGET_SECONDS, **changes)


@dataclass(frozen=True, slots=True)
class Measured:
    run_id: int
    device_name: str
    largest_batch_size: int
    samples_per_second: tuple[float, float, float] | None
    """Low, value and high."""


def measured_variants(run: Run, found: WhatToChange, user: User | None) -> Mapping[str, Measured]:
    if (requested := stored_spec(run)) is None:
        return {}
    specs: dict[str, RunSpec] = {}
    for variant in found.variants:
        with suppress(SpecError):  # a later version no longer allows it
            specs[variant.label] = spec_of(requested, variant)
    return _measured_of(run, user, specs)


def measured_sizes(run: Run, user: User | None) -> Mapping[int, Measured]:
    """Find the measurement of an estimate's training at each length or image size of its frontier."""
    spec, sizes = stored_spec(run), run.spec.get("frontier")
    if spec is None or not sizes:
        return {}
    try:
        return _measured_of(run, user, {each.input_size: each for each in specs_of(spec, sizes)})
    except SpecError:  # a later version no longer allows a size
        return {}


def _measured_of(run: Run, user: User | None, specs: Mapping[_Of, RunSpec]) -> dict[_Of, Measured]:
    """Find each training's measurement with today's software, on the kind of the estimate's card that measured most."""
    devices = devices_for(run, Device.objects.enabled().allowing(user))
    return max((_measured_on(specs, same) for same in classes_of(devices)), key=len, default={})


def _measured_on(specs: Mapping[_Of, RunSpec], same: list[Device]) -> dict[_Of, Measured]:
    newest: dict[RunSpec, Run] = {}
    for spec in {(spec.precision, spec.optimizer): spec for spec in specs.values()}.values():
        for run, stored, _ in runs_with_todays_software(spec, same, certified=True, largest_batch_size__gt=0):
            newest.setdefault(part_without(stored, _NOT_OF_SETTINGS), run)
    wanted = {name: part_without(spec, _NOT_OF_SETTINGS) for name, spec in specs.items()}
    return {name: _measured(newest[key]) for name, key in wanted.items() if key in newest}


def _measured(run: Run) -> Measured:
    speed = speed_of(MeasuredResult.from_dict(run.result or {}).recommended) if run.is_speed_measurable else None
    interval = (speed.low, speed.value, speed.high) if speed else None
    return Measured(run.pk, run.device_name, run.largest_batch_size or 0, interval)


def devices_for(run: Run, devices: Iterable[Device]) -> list[Device]:
    """Return the devices of the card that an estimate is for: a measurement on another would say nothing of it."""
    if run.gpu == CPU:
        return [device for device in devices if device.kind == "cpu"]
    return [device for device in devices if (card := gpu_of(device)) is not None and card.id == run.gpu]
