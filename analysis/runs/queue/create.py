"""Runs enter the queue, workers are woken, and waiting runs are cancelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django_q.tasks import async_task

from analysis.accounts.quotas import enforce_quota
from analysis.audit.record import record, record_changes
from analysis.models import Device, Run, State
from analysis.models.querysets import compute_capability, is_partition
from analysis.permissions import may_manage
from analysis.runs.bulk import BulkResult, changeable_ids
from analysis.runs.columns.run_settings import run_settings_keep
from analysis.runs.columns.run_text import run_text_keep
from analysis.runs.kinds import BY_KIND, devices_needed, kind_of, spec_columns
from analysis.runs.queue.outbox import note_ends
from analysis.runs.queue.placement import ANYWHERE, Placement
from analysis.runs.queue.scheduling import group_of, has_capability, has_memory, is_wanted, may_run
from engine.errors import SpecError
from engine.questions.kinds import Spec
from engine.settings.step_settings import AMPERE, EMULATED_BEFORE_AMPERE, NEEDS_AMPERE
from engine.text.units import format_bytes

_WOKEN_DEVICES_MAX = 3  # for a run that any of many could take: the first to claim has it
_AMPERE = float(".".join(map(str, AMPERE)))


def run_create(
    *,
    spec: Spec,
    place: Placement = ANYWHERE,
    requested_by: User | None = None,
    priority: int = Run.Priority.NORMAL,
    accepts_shared_device: bool = False,
    uses_device_price: bool = False,
    takes_over: Run | None = None,
) -> Run:
    """Store a queued run and wake the workers that may take it, in one transaction.

    `takes_over` is a run of the same spec: the engine starts with its probes where device and environment are the same.
    Raises SpecError when no device of that placement can ever run it or it requests more than is allowed, and
    QuotaExceededError when the person has too many runs in the queue.
    """
    kind = kind_of(spec)
    placed = BY_KIND[kind].placed(spec, place.device.device if place.device else place.kind)
    queued = {
        "requested_by": requested_by,
        "priority": priority,
        "accepts_shared_device": accepts_shared_device,
        "uses_device_price": uses_device_price,
        "requested_device": place.device,
        "requested_kind": place.device.kind if place.device else place.kind,
        "requested_device_class": place.device_class,
        "device_count": devices_needed(placed),
        "takes_over": takes_over,
    }
    run = Run(**queued | spec_columns(placed))
    # a card is only given a precision that it emulates where it is named
    own = NEEDS_AMPERE if place.device else (*NEEDS_AMPERE, *EMULATED_BEFORE_AMPERE)
    if run.requested_kind == "cuda" and run.precision in own:
        run.needs_compute_capability = _AMPERE
    refuse_excessive_request(run)
    with transaction.atomic():
        enforce_quota(run)
        if run.needs_device:
            _refuse_impossible_run(run, place)
        run.save(force_insert=True)
        run_text_keep(run_id=run.pk)
        run_settings_keep(run=run)
        record("run.create", target=run, after=describe_request(run))
        wake_for(run=run)
    return run


def wake_for(*, run: Run) -> None:
    if not run.needs_device:
        estimator_wake()
        return
    if run.requested_device is not None:
        worker_wake(device=run.requested_device)
        return
    idle = Device.objects.taking_runs().seen_lately().idle().unheld().allowing(run.requested_by).best_first()
    ready = [device for device in idle.filter(kind=run.requested_kind) if may_run(run, device)]
    if run.device_count > 1:  # one worker of each group finds out who starts it
        ready = list({group_of(device): device for device in ready}.values())
    for device in ready[:_WOKEN_DEVICES_MAX]:
        worker_wake(device=device)


def worker_wake(*, device: Device) -> None:
    """Make the device's worker look at the queue. The message carries no data: the rows are the truth."""
    async_task("analysis.workers.tasks.wake", cluster=device.queue_name, ack_failure=True)


def estimator_wake() -> None:
    """Wake a worker of the default queue, because estimates wait."""
    async_task("analysis.workers.tasks.estimate", cluster=settings.Q_CLUSTER["name"], ack_failure=True)


def runs_cancel(*, run_ids: Collection[int]) -> int:
    """Cancel waiting runs at once and request that running ones stop. Returns how many were not over."""
    runs = Run.objects.filter(pk__in=run_ids)
    unfinished = runs.filter(state__in=(State.QUEUED, State.RUNNING)).order_by().select_for_update()
    with transaction.atomic():
        found = list(unfinished.values_list("pk", "state", "cancel_requested"))
        cancelled = runs.queued().update(state=State.CANCELLED, cancel_requested=True, finished_at=Now())
        note_ends([pk for pk, state, _ in found if state == State.QUEUED], State.CANCELLED)
        stopping = runs.running().update(cancel_requested=True)
        record_changes(
            ("run.cancel", ("run", str(pk)), {"state": state}, None)
            for pk, state, is_requested in found
            if not is_requested
        )
    return cancelled + stopping


def runs_cancel_by(*, run_ids: Collection[int], by: User) -> BulkResult:
    mine = changeable_ids(run_ids, by)
    done = runs_cancel(run_ids=mine)
    return BulkResult(done, len(run_ids) - len(mine), len(mine) - done, "over already")


def runs_cancel_waiting_of(*, people: Collection[User]) -> int:
    """Cancel the waiting runs of accounts that are closed or deleted. Running ones are left to end."""
    waiting = Run.objects.queued().filter(requested_by__in=[person.pk for person in people])
    return runs_cancel(run_ids=list(waiting.order_by().values_list("pk", flat=True)))


def describe_request(run: Run) -> dict[str, Any]:
    """Return what the audit log stores of a new run; the rest is in the run."""
    place = run.requested_device_id or run.requested_device_class or run.requested_kind or run.gpu
    values = {"kind": run.published_kind, "model": run.model, "place": place, "priority": run.priority}
    return {**values, "precision": run.precision, "optimizer": run.optimizer}


def refuse_excessive_request(run: Run) -> None:
    """Refuse a time budget or priority that this person may not request. Raises SpecError."""
    longest = settings.RUN_TIME_BUDGET_MAX_SECONDS
    if run.spec["time_budget_seconds"] > longest:
        raise SpecError("time_budget_seconds", f"this server allows at most {longest:,.0f}")
    if run.priority not in Run.Priority.values:
        raise SpecError("priority", f"must be one of {', '.join(map(str, Run.Priority.values))}")
    if run.priority == Run.Priority.HIGH and run.requested_by is not None and not may_manage(run.requested_by):
        raise SpecError("priority", "high is for GPU managers; use normal or low")


def _refuse_impossible_run(run: Run, place: Placement) -> None:
    """Refuse a run that no device can execute. Each reason is checked by itself, to name the field at fault."""
    if place.device is not None and run.device_count > 1:
        raise SpecError(
            "device", f"{run.model} takes {run.device_count} devices of one host: name a kind, such as cuda"
        )
    if place.device is not None and not Device.objects.enabled().filter(pk=place.device.pk).exists():
        raise SpecError("device", f"{place} takes no runs: it is disabled")
    offered = Device.objects.enabled().allowing(run.requested_by).filter(kind=run.requested_kind)
    wanted = _of_enough(run, [card for card in offered if is_wanted(run, card)])
    if not wanted and run.device_count > 1:
        raise SpecError("device", f"no host has {run.device_count} enabled {place}s of one model that you may use")
    if not wanted:
        raise SpecError("device", f"there is no enabled {place} that you may use")
    roomy = _of_enough(run, [card for card in wanted if has_memory(run, card)])
    if not roomy:
        capacity = format_bytes(max(card.capacity_bytes for card in wanted))
        needed = format_bytes(run.needs_bytes or 0)
        raise SpecError("memory_limit_bytes", f"{needed} is above what {place} has ({capacity})")
    if not _of_enough(run, [card for card in roomy if has_capability(run, card)]):
        best = max(compute_capability(card) or 0 for card in roomy)
        precision = run.precision
        raise SpecError("precision", f"{precision} needs compute capability {_AMPERE} or later; {place} has {best}")


def _of_enough(run: Run, cards: Sequence[Device]) -> list[Device]:
    """Keep the devices of hosts with enough cards of one model for the run."""
    usable = [card for card in cards if run.device_count == 1 or not is_partition(card)]
    of_group = Counter(map(group_of, usable))
    return [card for card in usable if of_group[group_of(card)] >= run.device_count]
