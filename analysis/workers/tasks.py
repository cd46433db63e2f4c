"""What the queue calls. A message only says "look": the rows decide what is done."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

from analysis.models import Device, Run
from analysis.runs import services
from analysis.runs.retention import retain_if_due
from analysis.workers import device_discovery
from analysis.workers.device_lock import DeviceBusy, device_lock, kill_left_behind
from analysis.workers.estimates import estimates_recover, owner_of_this_process
from analysis.workers.heartbeat import Pulse
from analysis.workers.recovery import device_recover, folders_tidy
from analysis.workers.stop_pipe import Lifeline
from analysis.workers.supervisor import Pace, supervise

logger = logging.getLogger(__name__)

_RETENTION_SECONDS = 20.0  # an estimate that comes meanwhile waits so long
_ESTIMATE_PACE = Pace(wall_grace_seconds=30.0)


@dataclass(frozen=True, slots=True)
class Duty:
    """What this worker works on, how it learns that it should stop, and how it shows that it lives."""

    device_id: int | None
    lifeline: Lifeline
    pulse: Pulse


_duty: Duty | None = None


def take_up(duty: Duty) -> None:
    """Called once by `analysis.workers.worker`, before django-q2 forks the processes that inherit it."""
    global _duty
    _duty = duty


def wake() -> str:
    """Run the next waiting run of this worker's device; then ask to be woken again while more wait."""
    if _duty is None or _duty.device_id is None:
        raise RuntimeError("this process serves no device; start workers with: python manage.py worker --device ...")
    _duty.pulse.beat()
    device = Device.objects.select_related("host").get(pk=_duty.device_id)
    try:
        with device_lock(device) as descriptor:
            said = _work(device, descriptor, _duty)
    except DeviceBusy:
        return "busy"  # whoever holds the device wakes this worker when it is done
    rewake(device)
    return said


def rewake(device: Device) -> None:
    """After the device was let go: more may be waiting."""
    if Run.objects.waiting_for(device).exists():
        services.worker_wake(device=device)


def housekeep() -> str:
    """What needs no device, in the default queue: take the runs of dead owners, remove what nobody needs."""
    beat = _duty.pulse.beat if _duty is not None else lambda: None
    beat()
    folders_tidy()
    estimates_recover()
    taken = services.runs_reap()
    estimator_rewake()
    retain_if_due(seconds=_RETENTION_SECONDS, beat=beat)
    return f"taken from silent owners: {taken}"


def estimate() -> str:
    """Run the next waiting estimate, in the default queue; then ask to be woken again while more wait."""
    if _duty is None:
        raise RuntimeError("this process is no worker; start one with: python manage.py worker")
    _duty.pulse.beat()
    if _duty.lifeline.is_cut():
        return "stopping"
    run = services.estimate_claim(owner=owner_of_this_process())
    if run is None:
        return "nothing waits"
    supervise(run, should_stop=_duty.lifeline.is_cut, on_tick=_duty.pulse.beat, pace=_ESTIMATE_PACE)
    estimator_rewake()
    return _told(run)


def estimator_rewake() -> None:
    """More may be waiting: a message asks for one estimate, and messages can be lost."""
    if Run.objects.waiting_estimates().exists():
        services.estimator_wake()


def _work(device: Device, descriptor: int, duty: Duty) -> str:
    device_recover(device)
    if duty.lifeline.is_cut():
        return "stopping"
    device_discovery.foreign_use_read(device)
    run = services.run_claim(device=device, owner=f"{device.host}:{os.getpid()}")
    if run is None:
        return "nothing waits"
    logger.info("run %s starts on %s", run.pk, device)
    try:
        supervise(run, keep_open=[descriptor], should_stop=duty.lifeline.is_cut, on_tick=duty.pulse.beat)
    finally:
        kill_left_behind(device)
    return _told(run)


def _told(run: Run) -> str:
    run.refresh_from_db(fields=["state"])
    logger.info("run %s: %s", run.pk, run.state)
    return f"run {run.pk}: {run.state}"
