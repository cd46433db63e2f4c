"""Reuse before re-run: offers the newest certified result of an equal spec, on the same class of card and stack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from analysis.models import Attempt, Device, Run, State
from analysis.models.querysets import RunQuerySet
from engine.errors import SpecError
from engine.spec import DEFAULTS, RunSpec

LOOKED_THROUGH_MAX = 100
"""Newest runs of one model, card, precision and optimizer that are read: older ones are of an older stack."""
SAME_CAPACITY = 0.02
"""Cards of one name may differ twofold in memory; drivers reserve a little of it, in differing amounts."""
STACK = ("torch", "torchvision", "transformers", "cuda", "hip", "allocator_settings")
# settings that change no measured figure: which of equal devices, the time budget, the assumptions about cost, the
# profile that settings are from, and the count of a config's parameters, which a run has only after its start
NOT_MEASURED = (
    *("device", "time_budget_seconds", "price_per_hour_usd", "hours_per_run", "runs_per_year"),
    "like",
    "config_parameters",
)

Stack = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class EarlierResult:
    run: Run
    torch: str
    library: str


def earlier_result(spec: RunSpec, devices: Iterable[Device]) -> EarlierResult | None:
    """Find the newest result of these devices, or of others of their classes."""
    found = [result for same in classes_of(devices) if (result := _result_of_class(spec, same))]
    return max(found, key=lambda result: (result.run.finished_at, result.run.pk), default=None)


def classes_of(devices: Iterable[Device]) -> list[list[Device]]:
    ordered = sorted(devices, key=lambda device: (device.name, device.capacity_bytes))
    return [list(group) for _, group in groupby(ordered, key=lambda device: (device.name, device.capacity_bytes))]


def _result_of_class(spec: RunSpec, same: Sequence[Device]) -> EarlierResult | None:
    wanted = part_without(spec, NOT_MEASURED)
    for run, stored, environment in runs_with_todays_software(spec, same, certified=True):
        if part_without(stored, NOT_MEASURED) == wanted:
            library = spec.workload.library
            return EarlierResult(run, str(environment["torch"]), f"{library} {environment.get(library)}")
    return None


def runs_with_todays_software(
    spec: RunSpec, same: Sequence[Device], **conditions: Any
) -> Iterator[tuple[Run, RunSpec, Mapping[str, Any]]]:
    # the stack of each device's last run: this process cannot import torch to find out
    ran_here = Attempt.objects.filter(device=OuterRef("pk"), run__reported_from="")
    ended = ran_here.filter(ended_at__isnull=False, environment__isnull=False)
    newest = Subquery(ended.order_by("-ended_at").values("environment")[:1])
    rows = Device.objects.filter(pk__in=[device.pk for device in same]).order_by().values_list(newest, flat=True)
    stacks = {stack_of(row["environment"]) for row in rows if row and row.get("environment")}
    if not stacks:
        return
    for run in measured_alone(spec, same[0]).filter(**conditions)[:LOOKED_THROUGH_MAX]:
        environment = (run.attempt_environment or {}).get("environment") or {}
        if stack_of(environment) in stacks and (stored := stored_spec(run)) is not None:
            yield run, stored, environment


def measured_alone(spec: RunSpec, device: Device) -> QuerySet[Any]:
    """Return unshared runs of this setting and class, newest first, by index `run_trend`, with their environment."""
    around = SAME_CAPACITY * device.capacity_bytes
    attempt = Attempt.objects.filter(run=OuterRef("pk"), number=OuterRef("attempt"))
    capacity = (int(device.capacity_bytes - around), int(device.capacity_bytes + around))
    runs = finished_alone(spec, device.name).filter(model=spec.model, capacity_bytes__range=capacity)
    newest = runs.with_places().defer("result", "memory_curve")
    return newest.annotate(attempt_environment=Subquery(attempt.values("environment")[:1]))


def finished_alone(spec: RunSpec, device_name: str) -> RunQuerySet:
    """Return the trusted measurements with these main settings that had such a card to themselves, newest first."""
    same = {"device_name": device_name[:200], "precision": spec.precision, "optimizer": spec.optimizer}
    runs = Run.objects.measuring().trusted().filter(state=State.FINISHED, is_shared=False, **same)
    return runs.order_by("-finished_at", "-id")


def stack_of(environment: Mapping[str, Any]) -> Stack:
    return tuple(str(environment.get(name)) for name in STACK)  # a document may hold anything in place of a text


def stored_spec(run: Run) -> RunSpec | None:
    try:
        return run.run_spec
    except SpecError:
        return None


def newest_like(runs: RunQuerySet, spec: RunSpec, but_for: Iterable[str]) -> Run | None:
    """Find the newest of these runs with this spec, but for some settings."""
    wanted = part_without(spec, but_for)
    for run in runs.defer("result", "memory_curve").order_by("-pk")[:LOOKED_THROUGH_MAX]:
        stored = stored_spec(run)
        if stored is not None and part_without(stored, but_for) == wanted:
            return run
    return None


def part_without(spec: RunSpec, names: Iterable[str]) -> RunSpec:
    """Return the spec for comparison: the input size made explicit, and these settings reset to their defaults."""
    return replace(spec, **{name: DEFAULTS[name] for name in names} | {spec.workload.input_field: spec.input_size})
