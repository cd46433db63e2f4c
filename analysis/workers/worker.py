"""One django-q2 cluster for one device, or for work that needs none: fails fast, stops fast.

    main (this process) ── sentinel ── worker (runs analysis.workers.tasks.wake) ── engine
                                   ├── pusher (reads the queue's table)
                                   └── monitor (stores what tasks returned)

Each dies with its parent, so kill -9 of any of them leaves nothing behind. A process that died by a signal
may hold one of django-q2's locks for ever; then the whole cluster ends (`django_q_adapter`) and the process manager
starts a new one, which recovers what the old one left running. The same happens when worker or pusher are frozen: each
gives its sign of life also while it waits, so none depends on a message, which another worker may take.

The main process does what the queue cannot: it stores the worker's sign of life, reads the memory in use,
takes the runs of silent owners, and sends a wake-up every half minute, so a lost message costs at most that time.
"""

from __future__ import annotations

import logging
import os
import time
from multiprocessing.process import BaseProcess
from types import FrameType

from django.conf import settings
from django.db import connections
from django_q.models import OrmQ
from django_q.tasks import async_task

from analysis.database import DATABASE_AWAY, connections_release, is_locked
from analysis.models import Device
from analysis.runs import services
from analysis.workers.device_discovery import devices_refresh
from analysis.workers.device_lock import device_lock
from analysis.workers.django_q_adapter import DIED_EXIT_STATUS, SignsOfLife, start_cluster
from analysis.workers.fork_signs import Heartbeat, StopPipe
from analysis.workers.recovery import device_recover, estimates_recover, folders_tidy
from analysis.workers.strays import adopt_orphans, kill_strays, own_children
from analysis.workers.tasks import WorkerContext, set_worker_context
from engine.errors import DeviceBusy
from engine.machine.parent import die_with_parent

logger = logging.getLogger(__name__)

FROZEN_EXIT_STATUS = 71
REFRESH_SECONDS = 5.0
LOOK_SECONDS = 30.0
FROZEN_SECONDS = 150.0  # a process that works or waits gives a sign of life every few seconds
_TICK_SECONDS = 0.05
_STOP_SECONDS = 2.5


class Worker:
    """The main process of a worker that serves the default queue; `DeviceWorker` serves a device's."""

    queue_name: str = settings.Q_CLUSTER["name"]
    task = "analysis.workers.tasks.housekeep"
    device: Device | None = None

    def __init__(self) -> None:
        self._stop_pipe = StopPipe()
        self._heartbeats = {"worker": Heartbeat(), "pusher": Heartbeat()}
        self._is_stopping = False
        self._refresh_at = self._look_at = 0.0

    def work(self) -> int:
        """Work until a stop signal (returns 0), or until a process of the cluster died (70) or froze (71)."""
        device_id = self.device.pk if self.device else None
        set_worker_context(WorkerContext(device_id, self._stop_pipe, self._heartbeats["worker"]))
        self._recover(wait_seconds=5)
        OrmQ.objects.filter(key=self.queue_name).delete()  # the first look does their work
        connections.close_all()  # no connection may cross a fork
        os.register_at_fork(after_in_child=die_with_parent)
        adopt_orphans()  # the children of a process of the cluster that is killed
        own = own_children()
        try:
            return self._keep_cluster()
        finally:
            kill_strays(keep=own, is_stop=self._is_stopping)

    def _keep_cluster(self) -> int:
        worker, pusher = self._heartbeats.values()
        sentinel = start_cluster(self._ask_to_stop, SignsOfLife(worker.beat, pusher.beat))
        logger.info("worker for %s is ready", self.device or "work without a device")
        while not self._is_stopping and sentinel.is_alive():
            self._look_after(time.monotonic())
            for part, heartbeat in self._heartbeats.items():
                if (silent_seconds := heartbeat.age_seconds) > FROZEN_SECONDS:
                    logger.error("no sign of life from the %s for %.0f s: ending the cluster", part, silent_seconds)
                    sentinel.kill()
                    sentinel.join()
                    return FROZEN_EXIT_STATUS
            time.sleep(_TICK_SECONDS)
        return self._stop(sentinel) if self._is_stopping else DIED_EXIT_STATUS

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True

    def _look_after(self, now: float) -> None:
        """Do what is due; a database that is away must not end the run: then no worker can give a sign of life.

        A locked SQLite file is no exception: its holder may be our own frozen worker, which the cluster's end releases.
        """
        try:
            if now >= self._refresh_at:
                self._refresh_at = now + REFRESH_SECONDS
                self._refresh()
            if now >= self._look_at:
                self._look_at = now + LOOK_SECONDS
                self._look()
        except DATABASE_AWAY as exc:
            logger.warning("the database is away: %s", str(exc).splitlines()[:1])
            connections_release()
            if not is_locked(exc):
                for heartbeat in self._heartbeats.values():
                    heartbeat.beat()

    def _refresh(self) -> None:
        """Read nothing: without a device there is nothing to read."""

    def _look(self) -> None:
        services.runs_reap()
        folders_tidy()  # here and not in a task, which the worker of another host may take
        # a message that was sent before the clock was set back is not delivered yet: it is replaced
        OrmQ.objects.filter(key=self.queue_name).delete()
        async_task(self.task, cluster=self.queue_name, ack_failure=True)

    def _stop(self, sentinel: BaseProcess) -> int:
        """Let the supervisor end its engine and return the run to the queue; no row or process is left running."""
        self._stop_pipe.stop()
        self._recover(wait_seconds=_STOP_SECONDS)
        sentinel.kill()
        sentinel.join()
        self._recover(wait_seconds=0.3)
        return 0

    def _recover(self, *, wait_seconds: float) -> None:
        try:
            self._recover_runs(wait_seconds)
        except DATABASE_AWAY as exc:
            logger.warning("runs cannot be recovered while the database is away: %s", exc)
            connections_release()

    def _recover_runs(self, wait_seconds: float) -> None:
        estimates_recover(wait_seconds=wait_seconds)


class DeviceWorker(Worker):
    task = "analysis.workers.tasks.wake"

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device: Device = device
        self.queue_name = device.queue_name

    def _refresh(self) -> None:
        """Store the device's sign of life, memory and holder; not while a process of the worker is frozen."""
        was_held = self.device.is_held
        devices_refresh([self.device], silent_seconds=max(beat.age_seconds for beat in self._heartbeats.values()))
        if was_held and not self.device.is_held:
            self._look_at = 0.0  # a run may wait for it

    def _recover_runs(self, wait_seconds: float) -> None:
        """Recover the runs still marked running here: once the device is free, no process runs them."""
        try:
            with device_lock(self.device, wait_seconds=wait_seconds):
                device_recover(self.device)
        except DeviceBusy:
            logger.warning("%s is still in use by another process", self.device)
