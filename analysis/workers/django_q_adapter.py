"""All changes that we make to django-q2, written for `READ_IN_VERSION`; a test fails on another version.

The queue guarantees that a task runs *at least once*. A run is nevertheless measured by one worker at a time: every
write to it is fenced by the token in its row, and its message only says "look".

1. **A cluster fails fast.** A process that died by a signal may hold one of the queue's locks for ever, so the whole
   cluster ends (`FailFastSentinel`); django-q2 alone would start another process beside the lock.
2. **Processes are forks**: they inherit the stop pipe, the heartbeat and the patches below.
3. **A waiting process gives signs of life** (`SignsOfLife`): django-q2's processes wait without a time limit, and a
   waiting process could not be distinguished from a frozen one.
4. **Only our own tasks**, without arguments, and only plain values: see below.

A message is a pickled task, signed with SECRET_KEY (HMAC-SHA256 over the whole pickle and its time). django-q2 checks
the signature, unpickles, and imports what the function's name, its `hook` and its `chain` say: an attacker who has the
key and may write to the queue's table could run code on every host with a card. Here the pickle must not name any code,
and a task must be one of ours, so such an attacker can only make a worker look at the queue.
"""

from __future__ import annotations

import io
import logging
import multiprocessing
import os
import pickle
import queue
import signal
import zlib
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

from django.core.signing import BadSignature
from django_q import cluster as q2
from django_q import core_signing, pusher
from django_q.brokers import Broker
from django_q.conf import Conf
from django_q.signals import post_spawn

from analysis.workers.strays import adopt_orphans

logger = logging.getLogger(__name__)

READ_IN_VERSION = "1.11.1"
DIED_EXIT_STATUS = 70
WAIT_SECONDS = 5.0
TASKS = frozenset(
    {"analysis.workers.tasks.wake", "analysis.workers.tasks.housekeep", "analysis.workers.tasks.estimate"}
)
_PARTS = frozenset({"id", "name", "func", "args", "kwargs", "started", "cluster", "ack_failure"})
_TYPES = frozenset({("datetime", "datetime"), ("datetime", "timezone"), ("datetime", "timedelta")})
_BROKEN = (pickle.UnpicklingError, zlib.error, EOFError, ValueError, TypeError, LookupError, AttributeError)


class Refused(BadSignature):
    """A message is not of this portal: django-q2 drops it, as it drops a wrong signature."""


class SafeUnpickler:
    """Reads a pickle of plain values and times; one that calls anything else is refused."""

    @staticmethod
    def loads(data: bytes) -> Any:
        try:
            return _Unpickler(io.BytesIO(data)).load()
        except _BROKEN as exc:
            raise Refused(f"not a task: {exc}") from exc


class _Unpickler(pickle.Unpickler):
    """Resolves only the names that a pickled time needs."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _TYPES:
            raise Refused(f"{module}.{name} in a task")
        return super().find_class(module, name)


class SignedTaskReader:
    """Stands in for django-q2's SignedPackage where messages are taken in."""

    @staticmethod
    def loads(payload: str) -> dict[str, Any]:
        try:
            task = core_signing.loads(payload, key=Conf.SECRET_KEY, salt=Conf.PREFIX, serializer=SafeUnpickler)
        except _BROKEN as exc:
            raise Refused(f"no message of this queue: {exc}") from exc
        if not isinstance(task, dict) or task.get("func") not in TASKS:
            raise Refused(f"no task of ours: {task!r:.200}")
        if task.get("args") or task.get("kwargs") or not _PARTS.issuperset(task):
            raise Refused(f"{task['func']} takes no arguments, hooks or further tasks: {sorted(task)}")
        return task


@dataclass(frozen=True, slots=True)
class SignsOfLife:
    """Called by the processes that run tasks and read the queue's table, while they wait."""

    task_process: Callable[[], None] = lambda: None
    pusher: Callable[[], None] = lambda: None


class WatchedQueue:
    """A queue between two processes that waits in short intervals, and gives a sign of life after each."""

    def __init__(self, watched: multiprocessing.Queue[Any], beat: Callable[[], None]) -> None:
        self._watched, self._beat = watched, beat

    def get(self) -> Any:
        while True:
            self._beat()
            with suppress(queue.Empty):
                return self._watched.get(timeout=WAIT_SECONDS)

    def put(self, item: Any) -> None:
        """Put the item in, waiting while the queue is full: as long as a run is under way, which may be for hours."""
        while True:
            self._beat()
            with suppress(queue.Full):
                return self._watched.put(item, timeout=WAIT_SECONDS)


def watched_broker(broker: Broker, beat: Callable[[], None]) -> Broker:
    """Return the queue's table, whose reader gives a sign of life with each look."""

    def dequeue() -> Any:
        beat()
        return broker.dequeue()

    watched = copy(broker)
    watched.dequeue = dequeue
    return watched


class FailFastSentinel(q2.Sentinel):  # type: ignore[misc]  # django-q2 has no types
    """Replaces processes that ended in order; ends the whole cluster when one died or ran out of time."""

    signs = SignsOfLife()

    def spawn_worker(self) -> None:
        tasks = WatchedQueue(self.task_queue, self.signs.task_process)
        self.spawn_process(q2.worker, tasks, self.result_queue, multiprocessing.Value("f", -1), self.timeout)

    def spawn_pusher(self) -> BaseProcess:
        beat = self.signs.pusher
        tasks, broker = WatchedQueue(self.task_queue, beat), watched_broker(self.broker, beat)
        pusher: BaseProcess = self.spawn_process(q2.pusher, tasks, self.event_out, broker)
        return pusher

    def start(self) -> None:
        # the main process decides when the cluster ends; SIG_IGN would be inherited by the engine
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        super().start()

    def reincarnate(self, process: BaseProcess) -> None:
        left_in_order = process.exitcode is not None and process.exitcode >= 0
        if left_in_order:
            super().reincarnate(process)
            return
        logger.error("worker process %s died or ran out of time: ending the cluster", process.pid)
        os._exit(DIED_EXIT_STATUS)


def start_cluster(stop: Callable[[int, FrameType | None], None], signs: SignsOfLife) -> BaseProcess:
    """Start the processes that serve the queue, return their parent, the sentinel; `stop` ends this process."""
    multiprocessing.set_start_method("fork", force=True)  # Python 3.14 would not fork by itself
    pusher.SignedPackage = SignedTaskReader
    FailFastSentinel.signs = signs
    post_spawn.connect(adopt_orphans)  # of its engines, in the process that runs tasks
    q2.Sentinel = FailFastSentinel  # Cluster.start looks the name up in its module
    cluster = q2.Cluster()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)  # after Cluster(), which sets its own
    cluster.start()
    sentinel: BaseProcess = cluster.sentinel
    return sentinel
