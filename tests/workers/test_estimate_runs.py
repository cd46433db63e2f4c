"""An estimate goes the way of every run: queued, claimed, watched, ended; but it needs no device."""

import subprocess
import sys

import pytest
from django.db import IntegrityError
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from analysis.models import Measurement, Run, RunLog, State
from analysis.runs import services
from analysis.workers import recovery, tasks, worker
from analysis.workers.fork_signs import Heartbeat, StopPipe
from analysis.workers.recovery import estimates_recover, owner_of_this_process
from analysis.workers.supervisor import engine_arguments, start_engine, supervise
from tests.factories import make_claimed_estimate, make_estimate
from tests.factories.timeouts import QUICK
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db


@pytest.fixture
def default_worker(monkeypatch: pytest.MonkeyPatch, settings) -> tasks.WorkerContext:
    """This process serves the default queue, with the fake engine in place of the real one."""
    context = tasks.WorkerContext(None, StopPipe(), Heartbeat())
    monkeypatch.setattr(tasks, "_context", context)
    settings.ENGINE_COMMAND = (*FAKE_ENGINE, "ok")
    return context


@pytest.fixture
def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def tasks_queued() -> list[str]:
    return [SignedPackage.loads(row.payload)["func"] for row in OrmQ.objects.filter(key="memorymark")]


def watch(mode: str, *, stop=lambda: False) -> Run:
    run = make_claimed_estimate()
    supervise(run, command=[*FAKE_ENGINE, mode], should_stop=stop, timeouts=QUICK)
    run.refresh_from_db()
    return run


def test_the_engine_of_an_estimate_finds_no_card(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    script = "import json, os; print(json.dumps({'event': 'phase', 'phase': os.environ['CUDA_VISIBLE_DEVICES']}))"
    process = start_engine(make_claimed_estimate(), [sys.executable, "-c", script], keep_open=[])
    told = next(iter(process.events(60)))
    process.end()
    assert told["phase"] == ""


def test_an_estimate_asks_for_no_device_and_wakes_the_default_queue():
    run = make_estimate("a100-40gb")
    assert (run.kind, run.gpu, run.device, run.requested_device, run.requested_kind) == (
        "estimate",
        "a100-40gb",
        None,
        None,
        "",
    )
    assert tasks_queued() == ["analysis.workers.tasks.estimate"]


def test_no_row_can_be_an_estimate_and_have_a_device_or_a_measured_size():
    run = make_estimate()
    with pytest.raises(IntegrityError, match="estimate_has_no_device"):
        Run.objects.filter(pk=run.pk).update(largest_batch_size=8)


def test_a_default_worker_finishes_it_with_its_figures_apart_from_measured_ones(default_worker):
    run = make_estimate("a10")
    assert tasks.estimate() == f"run {run.pk}: finished"
    run.refresh_from_db()
    assert (run.estimated_largest_batch_size, run.estimated_safe_batch_size) == (99, 89)
    assert (run.largest_batch_size, run.recommended_batch_size, run.device) == (None, None, None)
    assert (run.device_name, run.estimate_is_calibrated) == ("NVIDIA A10", False)
    assert not Measurement.objects.exists()


def test_one_for_all_cards_stores_them_all_and_no_single_figure(default_worker):
    run = make_estimate("all")
    tasks.estimate()
    run.refresh_from_db()
    assert len(run.result["estimates"]) > 1
    assert (run.gpu, run.estimated_largest_batch_size) == ("all", None)


def test_its_attempt_has_no_device_and_its_log_says_what_was_found(default_worker):
    run = make_estimate()
    tasks.estimate()
    assert list(run.attempts.values_list("number", "device", "outcome")) == [(1, None, "finished")]
    run.refresh_from_db()
    said = "estimated for NVIDIA A10: largest batch 99; 89 with the margin of 8.0 %"
    assert said in [line.message for line in RunLog.objects.of(run)]


def test_several_wait_in_turn_and_each_message_wakes_the_next(default_worker):
    first, second = make_estimate(), make_estimate()
    OrmQ.objects.all().delete()
    assert tasks.estimate() == f"run {first.pk}: finished"
    assert tasks_queued() == ["analysis.workers.tasks.estimate"]
    OrmQ.objects.all().delete()
    assert tasks.estimate() == f"run {second.pk}: finished"
    assert tasks_queued() == []


def test_housekeeping_replaces_a_lost_message(default_worker):
    make_estimate()
    OrmQ.objects.all().delete()
    tasks.housekeep()
    assert tasks_queued() == ["analysis.workers.tasks.estimate"]


def test_a_person_with_many_estimates_does_not_keep_others_waiting(alice, root):
    asked = [make_estimate(requested_by=alice) for _ in range(3)]
    late = make_estimate(requested_by=root)
    order = [services.estimate_claim(owner="lab:1").pk for _ in range(3)]
    assert order == [asked[0].pk, late.pk, asked[1].pk]


def test_a_stopping_worker_takes_none(default_worker):
    run = make_estimate()
    default_worker.stop_pipe.stop()
    assert tasks.estimate() == "stopping"
    assert Run.objects.get(pk=run.pk).state == State.QUEUED


def test_a_process_that_is_no_worker_says_how_to_start_one(monkeypatch):
    monkeypatch.setattr(tasks, "_context", None)
    with pytest.raises(RuntimeError, match=r"manage\.py worker"):
        tasks.estimate()


def test_the_engine_is_told_the_spec_and_the_card():
    command, option, spec, *others = engine_arguments(make_claimed_estimate("a10", current_batch_size=4))
    assert (command, option, others) == ("estimate", "--spec", ["--events"])
    assert '"current_batch_size":4' in spec
    assert '"gpu":"a10"' in spec


def test_a_predictor_that_crashes_gets_one_more_try():
    run = watch("crash")
    assert (run.state, run.attempt) == (State.QUEUED, 1)
    assert tasks_queued() == ["analysis.workers.tasks.estimate"] * 2


def test_one_that_this_or_another_host_works_on_is_left_alone(dead_pid):
    make_estimate(), make_estimate()
    services.estimate_claim(owner=owner_of_this_process())
    services.estimate_claim(owner=f"elsewhere:{dead_pid}")
    assert estimates_recover() == 0
    assert Run.objects.running().count() == 2


def test_a_process_of_another_user_counts_as_alive(monkeypatch):
    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(recovery.os, "kill", refuse)
    make_estimate()
    services.estimate_claim(owner=owner_of_this_process())
    assert estimates_recover() == 0


def test_a_starting_default_worker_gives_back_what_a_dead_one_left(settings, dead_pid):
    run = make_estimate()
    services.estimate_claim(owner=f"{settings.HOST_NAME}:{dead_pid}")
    worker.Worker()._recover(wait_seconds=0)
    assert Run.objects.get(pk=run.pk).state == State.QUEUED
