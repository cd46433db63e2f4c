"""One django-q2 cluster for one device: started with the device's queue name, fails fast, stops fast.

    main (this process) ── sentinel ── worker (runs analysis.tasks.wake) ── engine
                                   ├── pusher (reads the queue's table)
                                   └── monitor (stores what tasks returned)

Each dies with its parent, so kill -9 of any of them leaves nothing behind. A process that died by a signal
may hold one of django-q2's locks for ever; then the whole cluster ends and its keeper starts a new one,
which interrupts what the old one left running.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import time
from multiprocessing.process import BaseProcess
from types import FrameType

from django.db import connections
from django.utils import timezone
from django_q import cluster as q2
from django_q.models import OrmQ, Schedule

from analysis import services
from analysis.device_lock import DeviceBusy, device_lock
from analysis.lifeline import Lifeline
from analysis.models import Device
from analysis.tasks import Duty, take_up

logger = logging.getLogger(__name__)

DIED_EXIT_STATUS = 70
_STOP_SECONDS = 2.5
_PR_SET_PDEATHSIG = 1


class FailFastSentinel(q2.Sentinel):
    """Replaces processes that left in order; ends everything when one died or ran out of time."""

    def start(self) -> None:
        # the main process decides when the cluster ends; not SIG_IGN, which the engine would inherit
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        super().start()

    def reincarnate(self, process: BaseProcess) -> None:
        left_in_order = process.exitcode is not None and process.exitcode >= 0
        if left_in_order:
            return super().reincarnate(process)
        logger.error("worker process %s died or ran out of time: ending the cluster", process.pid)
        os._exit(DIED_EXIT_STATUS)


class DeviceWorker:
    """The main process of a device's worker."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lifeline = Lifeline()
        self._is_stopping = False

    def work(self) -> int:
        """Until asked to stop (0) or until a process of the cluster died (70)."""
        take_up(Duty(self._device.pk, self._lifeline))
        self._recover(wait_seconds=5)
        wake_regularly(self._device)
        connections.close_all()  # no connection may cross a fork
        _forks_die_with_their_parent()
        sentinel = self._start_cluster()
        logger.info("worker for %s is ready", self._device)
        while not self._is_stopping and sentinel.is_alive():
            time.sleep(0.1)
        return self._stop(sentinel) if self._is_stopping else DIED_EXIT_STATUS

    def _start_cluster(self) -> BaseProcess:
        q2.Sentinel = FailFastSentinel  # Cluster.start looks the name up in its module
        cluster = q2.Cluster()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_stop)  # after Cluster(), which sets its own
        cluster.start()
        return cluster.sentinel

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True

    def _stop(self, sentinel: BaseProcess) -> int:
        """Let the supervisor end its engine, then the cluster; nothing is left running, in rows or processes."""
        self._lifeline.cut()
        self._recover(wait_seconds=_STOP_SECONDS)
        sentinel.kill()
        sentinel.join()
        self._recover(wait_seconds=0.3)
        return 0

    def _recover(self, *, wait_seconds: float) -> None:
        """Once the device is free, nobody runs what is still marked running here."""
        try:
            with device_lock(self._device, wait_seconds=wait_seconds):
                if count := services.runs_recover(device=self._device):
                    logger.warning("%s run(s) of a dead worker marked interrupted", count)
        except DeviceBusy:
            logger.warning("%s is still in use by another process", self._device)


def wake_regularly(device: Device) -> None:
    """Look at start-up and once a minute: a lost message costs a minute, not a run."""
    OrmQ.objects.filter(key=device.queue_name).delete()  # what older messages ask for, this one does
    Schedule.objects.update_or_create(
        name=f"wake {device.queue_name}",
        defaults={
            "func": "analysis.tasks.wake",
            "schedule_type": Schedule.MINUTES,
            "minutes": 1,
            "repeats": -1,
            "cluster": device.queue_name,
            "next_run": timezone.now(),
        },
    )
    services.worker_wake(device=device)


def _forks_die_with_their_parent() -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    os.register_at_fork(after_in_child=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL))
