"""What the queue calls. A message only says "look": the rows decide what is done."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

from analysis import services
from analysis.device_lock import DeviceBusy, device_lock
from analysis.lifeline import Lifeline
from analysis.models import Device, Run
from analysis.supervisor import supervise

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Duty:
    """What this worker works on, and how it learns that it should stop."""

    device_id: int
    lifeline: Lifeline


_duty: Duty | None = None


def take_up(duty: Duty) -> None:
    """Called once by `analysis.worker`, before django-q2 forks the processes that inherit it."""
    global _duty
    _duty = duty


def wake() -> str:
    """Run the oldest waiting run of this worker's device; then ask to be woken again while more wait."""
    if _duty is None:
        raise RuntimeError("this process serves no device; start workers with: python manage.py worker --device ...")
    device = Device.objects.get(pk=_duty.device_id)
    try:
        with device_lock(device) as descriptor:
            said = _work(device, descriptor, _duty.lifeline)
    except DeviceBusy:
        return "busy"  # whoever holds the device wakes this worker when it is done
    rewake(device)
    return said


def rewake(device: Device) -> None:
    """After the device was let go: more may be waiting."""
    if Run.objects.waiting_for(device).exists():
        services.worker_wake(device=device)


def _work(device: Device, descriptor: int, lifeline: Lifeline) -> str:
    services.runs_recover(device=device)
    if lifeline.is_cut():
        return "stopping"
    run = services.run_claim(device=device, owner=f"{device.host}:{os.getpid()}")
    if run is None:
        return "nothing waits"
    logger.info("run %s starts on %s", run.pk, device)
    supervise(run, keep_open=[descriptor], should_stop=lifeline.is_cut)
    run.refresh_from_db(fields=["state"])
    logger.info("run %s: %s", run.pk, run.state)
    return f"run {run.pk}: {run.state}"
