"""Reuse before re-run: offers the newest certified result of an equal spec, on the same class of card and stack."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import groupby
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from analysis.models import Attempt, Device, Run, State
from analysis.models.querysets import RunQuerySet
from engine.errors import SpecError
from engine.settings.spec import DEFAULTS, RunSpec

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
    for run, environment in equal_runs(spec, devices, NOT_MEASURED, certified=True):
        library = spec.workload.library
        return EarlierResult(run, str(environment["torch"]), f"{library} {environment.get(library)}")
    return None


def equal_runs(
    spec: RunSpec, devices: Iterable[Device], but_for: Collection[str], **conditions: Any
) -> Iterator[tuple[Run, Mapping[str, Any]]]:
    """Yield the runs of this spec, but for some settings, on devices of these classes, newest first."""
    wanted = part_without(spec, but_for)
    by_class = [runs_with_todays_software(spec, same, **conditions) for same in classes_of(devices)]
    for run, stored, environment in merge(*by_class, key=lambda each: (each[0].finished_at, each[0].pk), reverse=True):
        if part_without(stored, but_for) == wanted:
            yield run, environment


def classes_of(devices: Iterable[Device]) -> list[list[Device]]:
    ordered = sorted(devices, key=lambda device: (device.name, device.capacity_bytes))
    return [list(group) for _, group in groupby(ordered, key=lambda device: (device.name, device.capacity_bytes))]


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
    capacity = (int(device.capacity_bytes - around), int(device.capacity_bytes + around))
    same = {"model": spec.model, "precision": spec.precision, "optimizer": spec.optimizer, "is_shared": False}
    finished = Run.objects.measuring().trusted().filter(state=State.FINISHED, **same).order_by("-finished_at", "-id")
    runs = finished.filter(device_name=device.name[:200], capacity_bytes__range=capacity)
    attempt = Attempt.objects.filter(run=OuterRef("pk"), number=OuterRef("attempt"))
    newest = runs.with_places().defer("result", "memory_curve")
    return newest.annotate(attempt_environment=Subquery(attempt.values("environment")[:1]))


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
