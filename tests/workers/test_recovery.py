"""What a dead worker left: adopted when it was finished, given back when not; the living are left alone."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from analysis.models import Measurement, Run, State
from analysis.runs import services
from analysis.runs.queue.resume import earlier_attempt
from analysis.workers.attempt_files import result_file
from analysis.workers.recovery import device_recover, folders_tidy
from tests.factories import make_claimed_run, make_device, make_probe, make_refusal, make_result

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
    services.environment_set(**lease, environment={"device": {"name": "A"}, "environment": {"torch": "0"}})
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
