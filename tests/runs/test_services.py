"""How a run is stored, claimed, written to and ended."""

from datetime import timedelta
from itertools import accumulate

import pytest
from django.db import IntegrityError, transaction
from django_q.models import OrmQ

from analysis.models import Measurement, Run, RunLog, State
from analysis.runs import services
from analysis.runs.services import LogLine
from engine.errors import SpecError
from engine.facts.result import Outcome, Purpose
from tests.factories import (
    make_claimed_run,
    make_device,
    make_probe,
    make_refusal,
    make_result,
    make_result_that_does_not_fit,
    make_run,
    make_spec,
)

pytestmark = pytest.mark.django_db


def lease(run: Run) -> services.Lease:
    return services.Lease(run_id=run.pk, token=run.token)


def test_a_created_run_is_queued_with_its_spec_on_its_device():
    run = make_run(make_device(device="cuda:1", kind="cuda"), precision="bf16", current_batch_size=7)
    run.refresh_from_db()
    assert (run.state, run.attempt, run.precision, run.current_batch_size) == (State.QUEUED, 0, "bf16", 7)
    assert run.run_spec == make_spec(device="cuda:1", precision="bf16", current_batch_size=7)


def test_a_created_run_wakes_its_own_device_and_no_other():
    device, other = make_device(), make_device(device="cuda:0")
    make_run(device)
    assert list(OrmQ.objects.values_list("key", flat=True)) == [device.queue_name]
    assert device.queue_name != other.queue_name


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_rolled_back_leaves_no_wake_up_behind():
    device = make_device()
    with transaction.atomic():
        make_run(device)
        transaction.set_rollback(True)
    assert (Run.objects.count(), OrmQ.objects.count()) == (0, 0)


def test_a_disabled_device_takes_no_run():
    with pytest.raises(SpecError, match="disabled") as caught:
        make_run(make_device(enabled=False))
    assert caught.value.field == "device"
    assert not Run.objects.exists()


def test_a_time_budget_above_the_servers_is_refused(settings):
    settings.RUN_TIME_BUDGET_MAX_SECONDS = 60
    with pytest.raises(SpecError, match="at most 60") as caught:
        make_run(time_budget_seconds=61)
    assert caught.value.field == "time_budget_seconds"


def test_a_claim_starts_a_new_attempt_with_a_fresh_token():
    run = make_claimed_run()
    assert (run.state, run.attempt, run.owner) == (State.RUNNING, 1, "tester")
    assert len(run.token) == 32
    assert run.started_at
    assert run.heartbeat_at


def test_a_second_claim_of_the_same_run_is_refused():
    run = make_claimed_run()
    assert services.run_claim(device=run.requested_device, owner="late", run_id=run.pk) is None
    assert Run.objects.get(pk=run.pk).token == run.token


def test_a_device_runs_one_run_at_a_time():
    run = make_claimed_run()
    waiting = make_run(run.device)
    assert services.run_claim(device=run.requested_device, owner="b") is None
    assert Run.objects.get(pk=waiting.pk).state == State.QUEUED


def test_the_database_refuses_two_running_runs_on_a_device():
    run = make_claimed_run()
    other = make_run(run.device)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=other.pk).update(
            state=State.RUNNING, device=run.device, token="x", heartbeat_at=run.heartbeat_at
        )


@pytest.mark.parametrize("missing", [{"token": ""}, {"heartbeat_at": None}])
def test_the_database_refuses_a_running_run_without_owner(missing):
    run = make_claimed_run()
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(**missing)


def test_a_heartbeat_moves_the_clock_and_the_phase():
    run = make_claimed_run()
    assert services.run_heartbeat(**lease(run), phase="searching")
    now = Run.objects.get(pk=run.pk)
    assert (now.phase, now.heartbeat_at >= run.heartbeat_at, now.updated_at >= run.updated_at) == (
        "searching",
        True,
        True,
    )


def test_every_write_with_a_stale_token_is_refused_and_changes_nothing():
    run = make_claimed_run()
    stale = services.Lease(run_id=run.pk, token="stale")
    writes = (
        services.run_heartbeat(**stale, phase="searching"),
        services.measurement_add(**stale, probe=make_probe(), sequence=1),
        services.log_add(**stale, lines=[LogLine("info", "hello")], first_sequence=1),
        services.run_finish(**stale, result=make_result().to_dict()),
        services.run_fail(**stale, code="x", message="x"),
        services.run_mark_cancelled(**stale),
    )
    assert writes == (False,) * 6
    assert Run.objects.get(pk=run.pk).updated_at == run.updated_at
    assert not Measurement.objects.exists()
    assert not RunLog.objects.exists()


def test_nothing_is_written_to_a_run_that_is_over():
    run = make_claimed_run()
    services.run_fail(**lease(run), code="engine_died", message="fell")
    assert not services.run_finish(**lease(run), result=make_result().to_dict())
    assert Run.objects.get(pk=run.pk).state == State.FAILED


def test_probes_are_stored_in_order_and_come_back_equal():
    run = make_claimed_run()
    probes = [make_probe(4), make_refusal(9, purpose=Purpose.CONFIRM, fresh_process=True)]
    for sequence, probe in enumerate(probes, start=1):
        assert services.measurement_add(**lease(run), probe=probe, sequence=sequence)
    stored = list(Measurement.objects.of(run))
    assert [m.sequence for m in stored] == [1, 2]
    assert [m.probe for m in stored] == probes


def test_an_error_text_no_database_takes_is_stored_cleaned():
    run = make_claimed_run()
    services.measurement_add(**lease(run), probe=make_refusal(error_message="a\x00b\ud800c"), sequence=1)
    assert Measurement.objects.get(run=run).error_message == "a\ufffdb\ufffdc"


def test_log_lines_are_numbered_and_cut_to_length():
    run = make_claimed_run()
    services.log_add(**lease(run), lines=[LogLine("info", "one")], first_sequence=1)
    services.log_add(**lease(run), lines=[LogLine("warning", "x" * 3000)], first_sequence=2)
    assert [(line.sequence, line.level, len(line.message)) for line in RunLog.objects.of(run)] == [
        (1, "info", 3),
        (2, "warning", 2000),
    ]


@pytest.mark.parametrize("batches", [[25], [9, 1, 15], [10, 15], [0, 25, 5]])
def test_a_full_log_ends_with_a_line_that_says_so(batches, monkeypatch):
    monkeypatch.setattr("analysis.runs.queue.progress.LOG_LINES_PER_ATTEMPT", 10)
    run = make_claimed_run()
    for done, count in zip(accumulate(batches, initial=0), batches, strict=False):
        lines = [LogLine("info", "again")] * count
        assert services.log_add(**lease(run), lines=lines, first_sequence=done + 1)
    messages = [line.message for line in RunLog.objects.of(run)]
    assert len(messages) == 10
    assert messages[:9] == ["again"] * 9
    assert "log is full" in messages[9]


def test_a_finished_run_carries_the_figures_lists_sort_on():
    run = make_claimed_run()
    assert services.run_finish(**lease(run), result=make_result().to_dict())
    run.refresh_from_db()
    assert (run.state, run.largest_batch_size, run.certified, run.boundary_reason) == (
        State.FINISHED,
        8,
        True,
        "out_of_memory",
    )
    assert (run.speedup, run.saving_per_year_usd, run.device_name) == (2.0, 60.0, "Test CPU")
    assert run.result["boundary"]["refused_batch_size"] == 9
    assert run.finished_at


def test_a_result_of_an_older_engine_leaves_the_interval_unknown():
    run, result = make_claimed_run(), make_result().to_dict()
    for name in ("speed", "speedup_low", "speedup_high"):
        del result[name]
    services.run_finish(**lease(run), result=result)
    run.refresh_from_db()
    assert (run.speedup, run.speedup_low, run.speedup_high, run.is_speed_measurable) == (2.0, None, None, None)


def test_a_model_that_does_not_fit_is_a_finished_run_without_figures():
    run = make_claimed_run()
    assert services.run_finish(**lease(run), result=make_result_that_does_not_fit().to_dict(), exit_status=3)
    run.refresh_from_db()
    assert (run.state, run.exit_status, run.boundary_reason) == (State.FINISHED, 3, "does_not_fit")
    assert (run.largest_batch_size, run.recommended_batch_size, run.speedup) == (0, None, None)


def test_a_failed_run_says_why():
    run = make_claimed_run()
    assert services.run_fail(**lease(run), code="workload_failed", message="the loss", exit_status=1)
    run.refresh_from_db()
    assert (run.state, run.error_code, run.error_message, run.exit_status) == (
        State.FAILED,
        "workload_failed",
        "the loss",
        1,
    )


def test_a_queued_run_is_cancelled_at_once():
    run = make_run()
    assert services.runs_cancel(run_ids=[run.pk])
    run.refresh_from_db()
    assert run.state == State.CANCELLED
    assert run.finished_at
    assert services.run_claim(device=run.requested_device, owner="a") is None


def test_a_running_run_is_asked_to_stop_and_then_marked():
    run = make_claimed_run()
    assert services.runs_cancel(run_ids=[run.pk])
    assert services.run_wants_cancel(run_id=run.pk)
    assert Run.objects.get(pk=run.pk).state == State.RUNNING
    assert services.run_mark_cancelled(**lease(run))
    assert Run.objects.get(pk=run.pk).state == State.CANCELLED


def test_every_update_moves_updated_at():
    run = make_run()
    long_ago = run.updated_at - timedelta(hours=1)
    Run.objects.filter(pk=run.pk).update(updated_at=long_ago)
    Run.objects.filter(pk=run.pk).update(phase="searching")
    assert Run.objects.get(pk=run.pk).updated_at > long_ago


def test_every_outcome_of_the_engine_can_be_stored():
    run = make_claimed_run()
    for number, outcome in enumerate(Outcome, start=1):
        services.measurement_add(**lease(run), probe=make_probe(number, outcome=outcome), sequence=number)
    assert {m.outcome for m in Measurement.objects.of(run)} == {o.value for o in Outcome}
