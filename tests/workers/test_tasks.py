"""What a wake-up does: recover, claim, run, and ask for another while more waits."""

import pytest
from django.db import OperationalError
from django_q.models import OrmQ

from analysis.models import Device, Run, State
from analysis.runs import services
from analysis.workers import tasks
from analysis.workers.device_lock import device_lock
from analysis.workers.fork_signs import Heartbeat, StopPipe
from tests.factories import make_claimed_run, make_device, make_run
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, settings) -> Device:
    """A device whose worker this process is, with the fake engine in place of the real one."""
    device = make_device()
    monkeypatch.setattr(tasks, "_context", tasks.WorkerContext(device.pk, StopPipe(), Heartbeat()))
    settings.ENGINE_COMMAND = (*FAKE_ENGINE, "ok")
    return device


def test_a_wake_up_runs_the_oldest_waiting_run(device):
    first, second = make_run(device), make_run(device)
    assert tasks.wake() == f"run {first.pk}: finished"
    assert Run.objects.get(pk=second.pk).state == State.QUEUED


def test_it_asks_to_be_woken_again_only_while_more_waits(device):
    make_run(device), make_run(device)
    OrmQ.objects.all().delete()
    tasks.wake()
    assert OrmQ.objects.filter(key=device.queue_name).count() == 1
    OrmQ.objects.all().delete()
    tasks.wake()
    assert not OrmQ.objects.exists()


def test_a_wake_up_with_nothing_to_do_does_nothing(device):
    assert tasks.wake() == "no run waits"


def test_a_wake_up_while_somebody_works_on_the_device_leaves_it_alone(device):
    run = make_run(device)
    with device_lock(device):
        assert tasks.wake() == "busy"
    assert Run.objects.get(pk=run.pk).state == State.QUEUED


def test_what_a_dead_worker_left_running_goes_back_and_is_run_again(device):
    left = make_claimed_run(device)
    assert tasks.wake() == f"run {left.pk}: finished"
    assert list(left.attempts.values_list("number", "cause")) == [(1, "owner_died"), (2, "")]


def test_work_without_a_device_takes_the_runs_of_silent_owners(monkeypatch):
    monkeypatch.setattr(services, "runs_reap", lambda: 3)
    assert tasks.housekeep() == "runs taken from silent owners: 3"


@pytest.mark.parametrize(
    "error",
    [OperationalError("database is locked"), ExceptionGroup("rules failed", [OperationalError("database is locked")])],
    ids=["at once", "in a rule"],
)
def test_work_that_meets_a_locked_database_is_postponed_with_one_log_line(monkeypatch, caplog, error):
    """As on a first start, when everything writes at once: no traceback, the next look does it."""

    def refuse(**kwargs) -> None:
        raise error

    monkeypatch.setattr(tasks, "connections_release", lambda: None)
    monkeypatch.setattr(tasks, "retain_if_due", refuse)
    assert tasks.housekeep() == "postponed: the database is away"
    assert "database is locked" in caplog.text
    assert "Traceback" not in caplog.text


def test_a_rule_that_fails_for_another_reason_is_told_in_full(monkeypatch):
    def refuse(**kwargs) -> None:
        raise ExceptionGroup("rules failed", [OperationalError("locked"), ZeroDivisionError()])

    monkeypatch.setattr(tasks, "retain_if_due", refuse)
    with pytest.raises(ExceptionGroup):
        tasks.housekeep()


def test_a_worker_that_stops_claims_nothing(device):
    run = make_run(device)
    tasks._context.stop_pipe.stop()
    assert tasks.wake() == "stopping"
    assert Run.objects.get(pk=run.pk).state == State.QUEUED


def test_a_process_that_serves_no_device_says_how_to_start_one(monkeypatch):
    monkeypatch.setattr(tasks, "_context", None)
    with pytest.raises(RuntimeError, match="manage.py worker --device"):
        tasks.wake()
