"""The tasks of the queue. A message only says "look": the rows decide what is done."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import wraps

from analysis.database import DATABASE_AWAY, connections_release
from analysis.models import Device, Run
from analysis.runs import services
from analysis.runs.keeping.retention import retain
from analysis.workers import device_discovery
from analysis.workers.device_lock import device_lock, kill_left_behind
from analysis.workers.fork_signs import Heartbeat, StopPipe
from analysis.workers.recovery import device_recover, estimates_recover, owner_of_this_process
from analysis.workers.strays import kill_strays, own_children
from analysis.workers.supervisor import SupervisorTimeouts, supervise
from engine.errors import DeviceBusy

logger = logging.getLogger(__name__)

_RETENTION_SECONDS = 20.0  # an estimate that arrives meanwhile waits as long
_OTHERS_LOOK_SECONDS = 5.0  # another worker holds its device for an instant, to look at the queue
_ESTIMATE_TIMEOUTS = SupervisorTimeouts(wall_grace_seconds=30.0)


@dataclass(frozen=True, slots=True)
class WorkerContext:
    device_id: int | None
    stop_pipe: StopPipe
    heartbeat: Heartbeat


_context: WorkerContext | None = None


def set_worker_context(context: WorkerContext) -> None:
    """Set the context of this worker: once, before django-q2 forks the processes that inherit it."""
    global _context
    _context = context


def _postpone_while_database_is_away(task: Callable[[], str]) -> Callable[[], str]:
    """Log one line, without a traceback, when the database is away or locked; the next wake-up repeats the task."""

    @wraps(task)
    def run() -> str:
        try:
            return task()
        except DATABASE_AWAY as exc:
            reason = str(exc)
        except ExceptionGroup as group:  # each retention rule fails by itself
            if group.subgroup(lambda exc: not isinstance(exc, (*DATABASE_AWAY, ExceptionGroup))):
                raise
            reason = str(group.exceptions[0])
        logger.warning("%s is postponed, the database is away: %s", task.__name__, reason.splitlines()[:1])
        connections_release()
        return "postponed: the database is away"

    return run


@_postpone_while_database_is_away
def wake() -> str:
    """Run the next waiting run of this worker's device; send another wake-up while more wait."""
    if _context is None or _context.device_id is None:
        raise RuntimeError("this process serves no device; start workers with: python manage.py worker --device ...")
    _context.heartbeat.beat()
    device = Device.objects.select_related("host").get(pk=_context.device_id)
    try:
        with device_lock(device) as descriptor:
            summary, freed = _work(device, descriptor, _context)
    except DeviceBusy:
        return "busy"  # the worker that holds it wakes this one; after a command line the next regular wake-up does
    for each in freed:
        rewake(each)
    return summary


def rewake(device: Device) -> None:
    if Run.objects.waiting_for(device).exists():
        services.worker_wake(device=device)


@_postpone_while_database_is_away
def housekeep() -> str:
    """Do the work that needs no device, in the default queue: take the runs of dead owners, apply retention rules."""
    beat = _context.heartbeat.beat if _context is not None else lambda: None
    beat()
    estimates_recover()
    taken = services.runs_reap()
    estimator_rewake()
    retain(seconds=_RETENTION_SECONDS, beat=beat, only_due=True)
    return f"runs taken from silent owners: {taken}"


@_postpone_while_database_is_away
def estimate() -> str:
    """Run the next waiting estimate, in the default queue; send another wake-up while more wait."""
    if _context is None:
        raise RuntimeError("this process is no worker; start one with: python manage.py worker")
    _context.heartbeat.beat()
    if _context.stop_pipe.is_stopping():
        return "stopping"
    run = services.estimate_claim(owner=owner_of_this_process())
    if run is None:
        return "no run waits"
    summary = _execute(run, (), (), _context, _ESTIMATE_TIMEOUTS)
    estimator_rewake()
    return summary


def estimator_rewake() -> None:
    """Send a wake-up while estimates wait: a message stands for one estimate, and messages can be lost."""
    if Run.objects.waiting_estimates().exists():
        services.estimator_wake()


def _work(device: Device, descriptor: int, context: WorkerContext) -> tuple[str, Sequence[Device]]:
    device_recover(device)
    if context.stop_pipe.is_stopping():
        return "stopping", ()
    device_discovery.foreign_use_read(device)
    owner = f"{device.host}:{os.getpid()}"
    found = services.claim_next(device=device, owner=owner)
    if isinstance(found, services.DeviceSet):
        return _work_together(found, descriptor, owner, context)
    if found is None:
        return "no run waits", ()
    return _execute(found, [device], [descriptor], context), [device]


def _work_together(
    wanted: services.DeviceSet, descriptor: int, owner: str, context: WorkerContext
) -> tuple[str, Sequence[Device]]:
    """Lock the other devices too, in the order that all workers keep, and run the run on all; or on none."""
    with ExitStack() as locks:
        descriptors = [descriptor]
        for other in wanted.devices[1:]:
            context.heartbeat.beat()
            descriptors.append(locks.enter_context(device_lock(other, wait_seconds=_OTHERS_LOOK_SECONDS)))
            device_recover(other)
            device_discovery.foreign_use_read(other)
        if context.stop_pipe.is_stopping():
            return "stopping", ()
        run = services.set_claim(wanted=wanted, owner=owner)
        if run is None:
            return "no run waits", ()
        return _execute(run, wanted.devices, descriptors, context), wanted.devices


def _execute(
    run: Run,
    devices: Sequence[Device],
    descriptors: Sequence[int],
    context: WorkerContext,
    timeouts: SupervisorTimeouts | None = None,
) -> str:
    logger.info("run %s starts on %s", run.pk, ", ".join(map(str, devices)) or "no device")
    own, stopping, beat = own_children(), context.stop_pipe.is_stopping, context.heartbeat.beat
    try:
        supervise(run, keep_open=descriptors, should_stop=stopping, on_tick=beat, timeouts=timeouts)
    finally:
        for device in devices:
            kill_left_behind(device)
        kill_strays(keep=own)
    run.refresh_from_db(fields=["state"])
    logger.info("run %s: %s", run.pk, run.state)
    return f"run {run.pk}: {run.state}"
