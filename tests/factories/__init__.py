"""Rows and results for tests: plausible in shape, round in figures, so that no one takes them for measured."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.utils import timezone

from analysis.models import Device, Host, Run
from analysis.permissions import OPERATOR, ROLES
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from engine.estimate.spec import EstimateSpec
from engine.facts.result import (
    Boundary,
    DeviceFacts,
    MemoryByKind,
    Outcome,
    Point,
    Probe,
    Purpose,
    Reason,
    RunResult,
    Savings,
    Waste,
)
from engine.questions.validation.spec import ValidationSpec
from engine.settings.spec import RunSpec
from engine.text.units import GIB, MIB

CAPACITY_BYTES = 8 * GIB


def make_user(name: str, role: str | None = OPERATOR, **columns: Any) -> User:
    """A person of a role. Its group is made here: tests that empty the tables take those of the migration with them."""
    user = User.objects.create_user(name, **columns)
    if role:
        group, _ = Group.objects.get_or_create(name=role)
        codenames = [right.removeprefix("analysis.") for right in ROLES[role]]
        group.permissions.set(Permission.objects.filter(content_type__app_label="analysis", codename__in=codenames))
        user.groups.add(group)
    return user


def make_host(name: str = "lab", **columns: Any) -> Host:
    return Host.objects.update_or_create(name=name, defaults=columns)[0]


def make_device(host: Host | str = "lab", **columns: Any) -> Device:
    defaults = {"device": "cpu", "kind": "cpu", "name": "Test CPU", "capacity_bytes": CAPACITY_BYTES}
    host = make_host(host) if isinstance(host, str) else host
    return Device.objects.create(host=host, **{**defaults, **columns})


def make_card(number: int = 0, host: Host | str = "lab", **columns: Any) -> Device:
    defaults = {"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0", "last_seen_at": timezone.now()}
    return make_device(host, device=f"cuda:{number}", kind="cuda", **{**defaults, **columns})


def make_spec(**fields: Any) -> RunSpec:
    return RunSpec(**{"model": "bert-tiny", **fields})


def make_run(device: Device | None = None, *, requested_by: User | None = None, **fields: Any) -> Run:
    place = Placement(device=device or make_device())
    return services.run_create(spec=make_spec(**fields), place=place, requested_by=requested_by)


def make_estimate(
    gpu: str = "a10",
    *,
    requested_by: User | None = None,
    what_to_change: str = "",
    frontier: Sequence[int] = (),
    largest: str = "",
    **fields: Any,
) -> Run:
    spec = EstimateSpec(make_spec(**fields), gpu, what_to_change, tuple(frontier), largest)
    return services.run_create(spec=spec, requested_by=requested_by)


def make_validation(device: Device | None = None, *, requested_by: User | None = None, **fields: Any) -> Run:
    spec = ValidationSpec(**{"model": "bert-tiny", **fields})
    return services.run_create(spec=spec, place=Placement(device=device or make_device()), requested_by=requested_by)


def make_claimed_validation(device: Device | None = None, **fields: Any) -> Run:
    run = make_validation(device, **fields)
    claimed = services.run_claim(device=run.requested_device, owner="tester", run_id=run.pk)
    assert claimed is not None
    return claimed


def make_claimed_estimate(gpu: str = "a10", **fields: Any) -> Run:
    make_estimate(gpu, **fields)
    claimed = services.estimate_claim(owner="lab:1")
    assert claimed is not None
    return claimed


def make_claimed_run(device: Device | None = None, **fields: Any) -> Run:
    run = make_run(device, **fields)
    claimed = services.run_claim(device=run.requested_device, owner="tester", run_id=run.pk)
    assert claimed is not None
    return claimed


def make_probe(batch_size: int = 8, **fields: Any) -> Probe:
    defaults: dict[str, Any] = {
        "outcome": Outcome.FITS,
        "steps": 3,
        "peak_allocated_bytes": batch_size * 100 * MIB,
        "memory_by_kind": MemoryByKind(10, 20, 30, 40, 50),
        "step_seconds": 0.5,
        "timed_step_seconds": (0.5, 0.5),
        "timing_is_steady": True,
        "samples_per_second": batch_size / 0.5,
        "wall_seconds": 2.0,
    }
    return Probe(**{"batch_size": batch_size, **defaults, **fields})


def make_refusal(batch_size: int = 9, **fields: Any) -> Probe:
    defaults = {"outcome": Outcome.OUT_OF_MEMORY, "error_type": "BudgetExceeded", "error_message": "over the limit"}
    return Probe(**{"batch_size": batch_size, **defaults, **fields})


FACTS = DeviceFacts("cpu", "cpu", "Test CPU", CAPACITY_BYTES, limit_bytes=GIB)


def make_result(**fields: Any) -> RunResult:
    """Eight fit, nine do not; four is used today."""
    current, largest = make_probe(4), make_probe(8)
    refused = make_refusal(9)
    confirmed = make_refusal(9, purpose=Purpose.CONFIRM, fresh_process=True)
    defaults: dict[str, Any] = {
        "spec": make_spec(current_batch_size=4),
        "device": FACTS,
        "boundary": Boundary(8, True, 9, Reason.OUT_OF_MEMORY, "over the limit", 5),
        "largest": Point.of(largest, FACTS),
        "fastest": Point.of(largest, FACTS),
        "recommended": Point.of(largest, FACTS),
        "current": Point.of(current, FACTS),
        "waste": Waste(GIB, 624 * MIB, 624 / 1024, 224 * MIB, 224 / 1024),
        "speedup": 2.0,
        "batch_size_ratio": 2.0,
        "savings": Savings(0.6, 2.0, 100, 1.2, 0.6, 60.0),
        "probes": (current, largest, refused, confirmed),
        "environment": {"torch": "0.0"},
    }
    return RunResult(**{**defaults, **fields})


def make_result_that_does_not_fit() -> RunResult:
    refused = make_refusal(1)
    return make_result(
        boundary=Boundary(0, True, 1, Reason.DOES_NOT_FIT, "over the limit"),
        largest=None,
        fastest=None,
        recommended=None,
        current=None,
        waste=Waste(GIB, None, None, None, None),
        speedup=None,
        batch_size_ratio=None,
        savings=Savings(0.6, 2.0, 100, 1.2, None, None),
        probes=(refused,),
    )


STACK = {"torch": "0.0", "torchvision": "0.1", "transformers": "0.2", "cuda": None}


def make_measured_run(device: Device | None = None, *, stack: dict[str, Any] | None = None, **fields: Any) -> Run:
    """A finished run of this device, with its environment stored as the engine tells it: four today, eight at most."""
    run = make_claimed_run(device, **{"current_batch_size": 4, **fields})
    where, environment = run.requested_device, {**STACK, **(stack or {})}
    facts = DeviceFacts(where.device, where.kind, where.name, where.capacity_bytes)
    services.attempt_set(
        run_id=run.pk, token=run.token, environment={"device": facts.to_dict(), "environment": environment}
    )
    result = make_result(spec=run.run_spec, device=facts, environment=environment)
    services.run_finish(run_id=run.pk, token=run.token, result=result.to_dict())
    run.refresh_from_db()
    return run


def make_run_of_several(count: int = 2, *, requested_by: User | None = None, **fields: Any) -> Run:
    """A waiting run that needs so many CUDA devices of one host, all or none. Nobody is woken for fewer meanwhile."""
    with transaction.atomic():
        run = services.run_create(
            spec=make_spec(device="cuda", **fields), place=Placement(kind="cuda"), requested_by=requested_by
        )
        Run.objects.filter(pk=run.pk).update(device_count=count)
    run.device_count = count
    return run
