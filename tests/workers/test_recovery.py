"""What a dead worker left is adopted or given back; and what a wake-up does."""

import json
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone
from django_q.models import OrmQ

from analysis.models import Device, Measurement, Run, State
from analysis.runs import services
from analysis.runs.queue.resume import earlier_attempt
from analysis.workers import tasks
from analysis.workers.attempt_files import result_file
from analysis.workers.device_lock import device_lock
from analysis.workers.fork_signs import Heartbeat, StopPipe
from analysis.workers.recovery import device_recover, folders_tidy
from tests.factories import make_claimed_run, make_device, make_probe, make_refusal, make_result, make_run
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db


def left_by_a_dead_worker(content: str | None) -> Run:
    run = make_claimed_run()
    if content is not None:
        result_file(run).write_text(content)
    assert device_recover(run.device) == 1
    run.refresh_from_db()
    return run


def test_a_result_that_was_finished_is_taken_instead_of_measured_again():
    run = left_by_a_dead_worker(json.dumps({"exit_status": 0, "result": make_result().to_dict()}))
    assert (run.state, run.attempt, run.largest_batch_size) == (State.FINISHED, 1, 8)


WRONGLY_TYPED = {"exit_status": 0, "result": {**make_result().to_dict(), "speedup": "fast"}}


@pytest.mark.parametrize(
    "content", [None, "", "{", "[]", '{"exit_status": 0, "result": {}}', "\x00\xff", json.dumps(WRONGLY_TYPED)]
)
def test_a_result_that_is_missing_or_torn_is_measured_again(content):
    run = left_by_a_dead_worker(content)
    assert (run.state, run.attempts.get().cause) == (State.QUEUED, "owner_died")


def test_a_result_of_another_claim_is_not_taken():
    run = make_claimed_run()
    result_file(run).write_text(json.dumps({"exit_status": 0, "result": make_result().to_dict()}))
    Run.objects.update(token="another")
    device_recover(run.device)
    assert Run.objects.get().state == State.QUEUED


def test_a_run_whose_worker_dies_every_time_is_interrupted_in_the_end():
    run = make_claimed_run()
    for _ in range(2):
        device_recover(run.device)
        assert services.run_claim(device=run.device, owner="tester")
    device_recover(run.device)
    run.refresh_from_db()
    assert (run.state, run.attempt, run.error_code) == (State.INTERRUPTED, 3, "owner_died")
    assert "3 times" in run.error_message


def test_a_cancelled_run_of_a_dead_worker_is_cancelled():
    run = make_claimed_run()
    services.runs_cancel(run_ids=[run.pk])
    device_recover(run.device)
    assert Run.objects.get().state == State.CANCELLED


def test_an_owner_is_silent_only_when_two_looks_found_it_silent(settings):
    run = make_claimed_run()
    Run.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    assert services.runs_reap() == 0
    assert services.runs_reap() == 0  # suspect, but not for long enough
    Run.objects.update(suspect_at=timezone.now() - timedelta(seconds=settings.RUN_SUSPECT_SECONDS + 1))
    assert services.runs_reap() == 1
    assert (Run.objects.get().state, run.attempts.get().cause) == (State.QUEUED, "host_lost")


def test_a_heartbeat_clears_the_suspicion_after_an_outage():
    run = make_claimed_run()
    Run.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1), suspect_at=timezone.now() - timedelta(hours=1))
    assert services.run_heartbeat(run_id=run.pk, token=run.token, phase="searching")
    assert services.runs_reap() == 0
    assert Run.objects.get().suspect_at is None


def test_a_clock_that_was_set_back_reaps_nobody():
    make_claimed_run()
    Run.objects.update(heartbeat_at=timezone.now() + timedelta(minutes=10))
    assert services.runs_reap() == 0


def test_the_next_attempt_knows_what_the_one_that_got_furthest_measured():
    run = make_claimed_run()
    lease = services.Lease(run_id=run.pk, token=run.token)
    services.attempt_set(**lease, environment={"device": {"name": "A"}, "environment": {"torch": "0"}})
    for sequence, probe in enumerate((make_probe(4), make_refusal(9)), start=1):
        services.measurement_add(**lease, probe=probe, sequence=sequence)
    device_recover(run.device)
    again = services.run_claim(device=run.device, owner="tester")
    told = earlier_attempt(again)
    assert (told["device"], told["environment"]) == ({"name": "A"}, {"torch": "0"})
    assert [probe["batch_size"] for probe in told["probes"]] == [4, 9]


def test_a_first_attempt_knows_nothing():
    assert earlier_attempt(make_claimed_run()) is None


def test_a_write_whose_confirmation_was_lost_can_be_repeated():
    run = make_claimed_run()
    lease = services.Lease(run_id=run.pk, token=run.token)
    for _ in range(2):
        assert services.measurement_add(**lease, probe=make_probe(), sequence=1)
        assert services.log_add(**lease, lines=[services.LogLine("info", "once")], first_sequence=1)
    assert (Measurement.objects.count(), run.log_lines.count()) == (1, 1)


def test_folders_of_attempts_that_are_over_are_removed():
    over, running = make_claimed_run(), make_claimed_run(make_device(device="cuda:0"))
    folders = [result_file(run).parent for run in (over, running)]
    services.run_fail(run_id=over.pk, token=over.token, code="x", message="y")
    folders_tidy()
    assert [folder.exists() for folder in folders] == [False, True]


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
    monkeypatch.setattr(tasks, "retain", refuse)
    assert tasks.housekeep() == "postponed: the database is away"
    assert "database is locked" in caplog.text
    assert "Traceback" not in caplog.text


def test_a_rule_that_fails_for_another_reason_is_told_in_full(monkeypatch):
    def refuse(**kwargs) -> None:
        raise ExceptionGroup("rules failed", [OperationalError("locked"), ZeroDivisionError()])

    monkeypatch.setattr(tasks, "retain", refuse)
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
