"""How a device's worker starts, and that it fails as a whole; that it really runs is in test_up_really_starts.py."""

import multiprocessing
import sqlite3
import threading
import time
from types import SimpleNamespace

import pytest
from django.db import OperationalError, connection
from django.db.utils import DatabaseErrorWrapper
from django_q import cluster as q2
from django_q import pusher
from django_q.models import OrmQ

from analysis.models import Device, Run, State
from analysis.workers import django_q_adapter, worker
from analysis.workers.device_lock import device_lock
from analysis.workers.django_q_adapter import (
    DIED_EXIT_STATUS,
    FailFastSentinel,
    SignsOfLife,
    WatchedQueue,
    start_cluster,
)
from analysis.workers.fork_signs import Heartbeat
from analysis.workers.worker import DeviceWorker, Worker
from tests.factories import make_claimed_run, make_device, make_run

pytestmark = pytest.mark.django_db


class Ended(Exception):
    """In place of the process's end."""


@pytest.fixture
def sentinel(monkeypatch: pytest.MonkeyPatch) -> FailFastSentinel:
    """A sentinel that guards nothing; what django-q2 would replace is listed in `replaced`."""

    def end(status: int) -> None:
        raise Ended(status)

    sentinel = FailFastSentinel.__new__(FailFastSentinel)
    sentinel.replaced = []
    monkeypatch.setattr(django_q_adapter.os, "_exit", end)
    monkeypatch.setattr(q2.Sentinel, "reincarnate", lambda self, process: self.replaced.append(process))
    return sentinel


@pytest.mark.parametrize("exitcode", [-9, -11, None], ids=["killed", "crashed", "out of time"])
def test_a_process_that_may_hold_a_lock_for_ever_ends_the_cluster(sentinel, exitcode):
    with pytest.raises(Ended, match=str(DIED_EXIT_STATUS)):
        sentinel.reincarnate(SimpleNamespace(exitcode=exitcode, pid=1))


@pytest.mark.parametrize("exitcode", [0, 1])
def test_a_process_that_left_in_order_is_replaced(sentinel, exitcode):
    process = SimpleNamespace(exitcode=exitcode, pid=1)
    sentinel.reincarnate(process)
    assert sentinel.replaced == [process]


def test_the_processes_of_the_cluster_are_forks_whatever_python_would_do(monkeypatch):
    made = SimpleNamespace(start=lambda: None, sentinel=None)
    monkeypatch.setattr(q2, "Cluster", lambda: made)
    monkeypatch.setattr(q2, "Sentinel", q2.Sentinel)
    monkeypatch.setattr(pusher, "SignedPackage", pusher.SignedPackage)
    monkeypatch.setattr(django_q_adapter.signal, "signal", lambda *given: None)
    try:
        multiprocessing.set_start_method("forkserver", force=True)
        start_cluster(lambda number, frame: None, SignsOfLife())
        assert multiprocessing.get_start_method() == q2.get_mp_context().get_start_method() == "fork"
    finally:
        multiprocessing.set_start_method(None, force=True)


def test_a_look_leaves_one_message_for_the_device_whatever_lay_there():
    device, other = make_device(), make_device(device="cuda:0")
    make_run(device), make_run(other)
    DeviceWorker(device)._look()
    assert OrmQ.objects.filter(key=device.queue_name).count() == 1
    assert OrmQ.objects.filter(key=other.queue_name).count() == 1


def test_work_without_a_device_is_woken_in_the_default_queue():
    Worker()._look()
    assert OrmQ.objects.get().key == "memorymark"


def test_each_look_tidies_the_folders_of_its_own_host(settings):
    """In a task it would be for luck to decide which host's folders are tidied."""
    left = settings.DATA_DIR / "runs" / "1" / "a-token-of-no-run"
    left.mkdir(parents=True)
    Worker()._look()
    assert not left.parent.exists()


def test_a_starting_worker_gives_back_what_a_dead_one_left():
    run = make_claimed_run()
    DeviceWorker(run.device)._recover(wait_seconds=0)
    assert Run.objects.get(pk=run.pk).state == State.QUEUED


def test_a_run_that_somebody_still_works_on_is_left_alone(caplog):
    run = make_claimed_run()
    with device_lock(run.device):
        DeviceWorker(run.device)._recover(wait_seconds=0)
    assert Run.objects.get(pk=run.pk).state == State.RUNNING
    assert "still in use" in caplog.text


def test_a_database_that_is_away_does_not_end_what_runs(monkeypatch, caplog):
    def fail() -> None:
        raise OperationalError("gone")

    own = Worker()
    monkeypatch.setattr(worker, "connections_release", lambda: None)
    monkeypatch.setattr(own, "_refresh", fail)
    own._look_after(now=1.0)
    assert "gone" in caplog.text


def test_a_lock_that_a_frozen_worker_may_hold_is_no_sign_of_life(monkeypatch, tmp_path):
    """F14 on SQLite: frozen in mid-write, the worker keeps the lock until its cluster is ended."""

    def write_beside_a_lock() -> None:
        with sqlite3.connect(tmp_path / "file") as holder, sqlite3.connect(tmp_path / "file", timeout=0) as other:
            holder.execute("BEGIN IMMEDIATE")
            with DatabaseErrorWrapper(connection):
                other.execute("BEGIN IMMEDIATE")

    own = Worker()
    monkeypatch.setattr(worker, "connections_release", lambda: None)
    monkeypatch.setattr(own, "_refresh", write_beside_a_lock)
    for heartbeat in own._heartbeats.values():
        monkeypatch.setattr(heartbeat, "beat", lambda: pytest.fail("a sign of life was given for the worker"))
    own._look_after(now=1.0)


def test_a_process_that_waits_for_a_message_gives_signs_of_life_until_one_comes(monkeypatch):
    """Default workers of several hosts share one queue: an idle one may never get a message."""
    monkeypatch.setattr(django_q_adapter, "WAIT_SECONDS", 0.01)
    tasks, signs = multiprocessing.Queue(), []

    def beat() -> None:
        signs.append("beat")
        if len(signs) == 4:
            tasks.put("a task")

    assert WatchedQueue(tasks, beat).get() == "a task"
    assert len(signs) >= 4


def test_a_process_that_cannot_hand_on_its_message_yet_gives_signs_of_life_too(monkeypatch):
    """The worker is busy, perhaps for hours: its pusher is not frozen."""
    monkeypatch.setattr(django_q_adapter, "WAIT_SECONDS", 0.01)
    tasks, signs = multiprocessing.Queue(maxsize=1), []
    tasks.put("first")

    def beat() -> None:
        signs.append("beat")
        if len(signs) == 4:
            assert tasks.get() == "first"

    WatchedQueue(tasks, beat).put("second")
    assert (tasks.get(), len(signs) >= 4) == ("second", True)


@pytest.mark.parametrize("part", ["worker", "pusher"])
def test_a_frozen_part_of_a_worker_is_no_sign_of_life_of_its_device(part, monkeypatch):
    own = DeviceWorker(make_device())
    own._refresh()
    assert Device.objects.seen_lately().exists()
    frozen_at = time.monotonic() - 100
    monkeypatch.setattr(own._heartbeats[part], "_beat_at", [frozen_at])
    own._refresh()
    assert not Device.objects.seen_lately().exists()


def test_the_pulse_tells_how_long_the_worker_has_stood_still():
    heartbeat = Heartbeat()
    heartbeat.beat()
    assert 0 <= heartbeat.age_seconds < 5


def test_a_reader_never_sees_a_half_written_pulse():
    """Written byte by byte or zeroed first, an age of the machine's whole uptime would kill a healthy worker."""
    heartbeat, is_over = Heartbeat(), threading.Event()

    def beat() -> None:
        while not is_over.is_set():
            heartbeat.beat()

    writer = threading.Thread(target=beat)
    writer.start()
    try:
        assert max(heartbeat.age_seconds for _ in range(20_000)) < 60
    finally:
        is_over.set()
        writer.join()
