"""The supervisor against a fake engine, good and bad in every way; and what an attempt learns before it measures."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError

from analysis import database
from analysis.models import Measurement, Run, RunLog, State
from analysis.runs import services
from analysis.runs.columns.result_columns import probe_columns
from analysis.runs.queue.resume import earlier_attempt
from analysis.runs.services import Lease, LogLine
from analysis.workers import supervisor
from analysis.workers.attempt_events import AttemptEvents
from analysis.workers.engine_process import EngineProcess
from analysis.workers.supervisor import GivenUp, SupervisorTimeouts, cause_of_death, describe_death, supervise
from engine.errors import SpecError
from engine.facts.result import Boundary
from engine.search.resume import EarlierAttempt
from engine.text.from_json import from_json
from engine.text.units import MIB
from tests.engine.questions.answers.answers import originals
from tests.factories import FACTS, make_claimed_run, make_measured_run, make_probe
from tests.factories.pages import prior_estimate
from tests.factories.timeouts import QUICK
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db


def watch(
    mode: str,
    *,
    stop: Callable[[Run], bool] = lambda run: False,
    timeouts: SupervisorTimeouts | None = None,
    **fields: Any,
) -> Run:
    """Supervise a fresh run with the fake engine in this mode; returns it as it is stored afterwards."""
    run = make_claimed_run(**fields)
    supervise(run, command=[*FAKE_ENGINE, mode], should_stop=lambda: stop(run), timeouts=timeouts or QUICK)
    run.refresh_from_db()
    return run


def watch_again(run: Run, mode: str) -> Run:
    claimed = services.run_claim(device=run.device, owner="tester", run_id=run.pk)
    assert claimed is not None
    supervise(claimed, command=[*FAKE_ENGINE, mode], timeouts=QUICK)
    claimed.refresh_from_db()
    return claimed


def messages(run: Run) -> list[str]:
    return [line.message for line in RunLog.objects.of(run)]


def has_started(run: Run) -> bool:
    return Run.objects.get(pk=run.pk).phase == "searching"


def test_a_result_finishes_the_run_with_its_probes_and_its_log():
    run = watch("ok")
    assert (run.state, run.largest_batch_size, run.exit_status, run.phase) == (State.FINISHED, 8, 0, "searching")
    assert [(m.batch_size, m.outcome) for m in Measurement.objects.of(run)] == [
        (4, "fits"),
        (8, "fits"),
        (9, "out_of_memory"),
    ]
    assert "batch 8 fits: 819.2 MiB, 9.0 samples/s, 3 steps" in messages(run)


def test_a_model_that_does_not_fit_at_batch_1_is_a_result():
    run = watch("out_of_memory_at_1")
    assert (run.state, run.exit_status, run.boundary_reason) == (State.FINISHED, 3, "does_not_fit")


def test_an_error_of_the_engine_fails_the_run_with_its_code_and_words():
    run = watch("error")
    assert (run.state, run.error_code, run.exit_status) == (State.FAILED, "workload_failed", 1)
    assert run.error_message == "the loss is not a number"
    assert RunLog.objects.of(run).last().level == "error"


@pytest.mark.parametrize(
    ("mode", "exit_status", "expected"),
    [
        ("crash", -11, "signal 11 (Segmentation fault) and gave no result. Its last output: about to fall"),
        ("killed", -9, "signal 9 (Killed) and gave no result."),
        ("terminated", 143, "signal 15 (Terminated) and gave no result."),
        ("cut_short", 143, "signal 15 (Terminated) and gave no result."),
        ("worker_died", 1, "the worker process was ended by SIGKILL"),
    ],
)
def test_an_engine_that_was_ended_by_a_signal_is_tried_once_more_and_then_fails_the_run(mode, exit_status, expected):
    first = watch(mode)
    assert (first.state, first.error_code, first.attempts.get().exit_status) == (State.QUEUED, "", exit_status)
    run = watch_again(first, mode)
    assert (run.state, run.attempt, run.exit_status) == (State.FAILED, 2, exit_status)
    assert expected in run.error_message


@pytest.mark.parametrize(
    ("exit_status", "cause"),
    [
        (-signal.SIGKILL, "engine_killed"),
        (-signal.SIGTERM, "engine_killed"),
        (128 + signal.SIGTERM, "engine_killed"),
        (128 + signal.SIGKILL, "engine_killed"),
        (128 + signal.SIGINT, "engine_killed"),
        (-signal.SIGSEGV, "engine_crashed"),
        (128 + signal.SIGABRT, "engine_crashed"),
        (None, "engine_died"),
        (0, "engine_died"),
        (1, "engine_died"),
        (128, "engine_died"),
        (255, "engine_died"),
    ],
)
def test_an_exit_status_tells_who_ended_the_engine_also_as_a_shell_says_it(exit_status, cause):
    assert cause_of_death(exit_status) == cause


@pytest.mark.parametrize("mode", ["terminated", "worker_died"])
def test_a_stop_that_reaches_the_engines_processes_first_does_not_count(mode, monkeypatch):
    """SIGTERM to every process at once: this one hears of it when the engine is dead already."""
    ended, end = [], EngineProcess.end

    def end_and_note(process: EngineProcess, wait_seconds: float = 30.0) -> bool:
        ended.append(process)
        return end(process, wait_seconds)

    monkeypatch.setattr(EngineProcess, "end", end_and_note)
    run = watch(mode, stop=lambda run: bool(ended))
    assert (run.state, run.attempts.get().cause, run.attempts.get().counted) == (State.QUEUED, "worker_stopped", False)


def test_an_engine_that_leaves_without_a_word_fails_the_run():
    run = watch("silent_exit")
    assert (run.state, run.error_code, run.exit_status) == (State.FAILED, "engine_died", 0)
    assert "ended with exit status 0 and gave no result." in run.error_message


def test_lines_that_are_no_events_are_logged_and_skipped():
    run = watch("garbage")
    assert (run.state, run.largest_batch_size) == (State.FINISHED, 8)
    said = messages(run)
    assert "Skipped a line that is not an event: not json" in said
    assert sum("Skipped" in message for message in said) == 6
    assert max(map(len, said)) < 300


def test_a_result_that_lacks_its_parts_fails_the_run():
    run = watch("bad_result")
    assert (run.state, run.error_code) == (State.FAILED, "bad_result")
    assert "missing required field `spec`" in run.error_message


def test_a_result_that_is_too_long_a_line_is_said_to_be_so():
    run = watch("long_result")
    assert (run.state, run.error_code) == (State.FAILED, "bad_result")
    assert "a line of more than 1 MiB" in run.error_message


@pytest.mark.slow
def test_a_flood_of_lines_fills_the_log_and_loses_no_probe():
    run = watch("flood")
    assert (run.state, Measurement.objects.of(run).count()) == (State.FINISHED, 3)
    assert RunLog.objects.of(run).count() == services.LOG_LINES_PER_ATTEMPT


def test_a_cancelled_run_ends_within_two_seconds_though_the_engine_ignores_sigterm():
    asked_at: list[float] = []

    def cancel_once_started(run: Run) -> bool:
        if not asked_at and has_started(run):
            asked_at.append(time.monotonic())
            services.runs_cancel(run_ids=[run.pk])
        return False

    run = watch("hang", stop=cancel_once_started)
    assert run.state == State.CANCELLED
    assert time.monotonic() - asked_at[0] < 2


def test_an_engine_that_outlives_its_time_is_stopped_and_the_run_says_so():
    run = watch("wait", time_budget_seconds=1)
    assert (run.state, run.error_code) == (State.FAILED, "time_out")


def test_a_worker_that_stops_gives_its_run_back_and_it_does_not_count():
    run = watch("wait", stop=has_started)
    attempt = run.attempts.get()
    assert (run.state, run.token, attempt.cause, attempt.counted) == (State.QUEUED, "", "worker_stopped", False)


def test_an_engine_that_stands_still_is_stopped_and_tried_once_more():
    run = watch("hang", timeouts=replace(QUICK, stall_seconds=0.5))
    assert (run.state, run.attempts.get().cause) == (State.QUEUED, "stalled")


def test_what_is_measured_while_the_database_is_away_is_stored_when_it_is_back(monkeypatch):
    stored = services.measurements_add
    refusals = iter([OperationalError("gone"), InterfaceError("closed")])

    def away_twice(**columns: Any) -> bool:
        for error in refusals:
            raise error
        return stored(**columns)

    monkeypatch.setattr(supervisor, "connections_release", lambda: None)
    monkeypatch.setattr(database, "connections_release", lambda: None)
    monkeypatch.setattr(services, "measurements_add", away_twice)
    run = watch("ok", timeouts=replace(QUICK, away_seconds=0.05))
    assert (run.state, run.attempt, Measurement.objects.of(run).count()) == (State.FINISHED, 1, 3)


def test_a_worker_that_stops_while_the_database_is_away_leaves_the_run_to_be_recovered(monkeypatch):
    asked: list[str] = []

    def gone(**columns: Any) -> bool:
        asked.append("finish")
        raise OperationalError("gone")

    monkeypatch.setattr(database, "connections_release", lambda: None)
    monkeypatch.setattr(services, "run_finish", gone)
    with pytest.raises(GivenUp):
        watch("ok", stop=lambda run: bool(asked))
    assert Run.objects.get().state == State.RUNNING


def test_a_supervisor_that_lost_its_lease_kills_the_engine_and_writes_nothing():
    def take_away(run: Run) -> bool:
        if has_started(run):
            Run.objects.filter(pk=run.pk).update(token="somebody else")
        return False

    run = watch("wait", stop=take_away)
    assert (run.state, run.token, run.finished_at) == (State.RUNNING, "somebody else", None)


def test_a_supervisor_that_breaks_leaves_neither_engine_nor_running_run():
    run = make_claimed_run()

    def break_off() -> bool:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        supervise(run, command=[*FAKE_ENGINE, "wait"], should_stop=break_off, timeouts=QUICK)
    run.refresh_from_db()
    assert (run.state, run.error_code) == (State.FAILED, "internal")


def test_an_engine_that_cannot_be_started_fails_the_run(monkeypatch):
    monkeypatch.setattr("analysis.workers.engine_process.dies_with_its_parent", tuple)
    run = make_claimed_run()
    assert supervise(run, command=["/nowhere/python"]) is None
    run.refresh_from_db()
    assert (run.state, run.error_code) == (State.FAILED, "engine_not_started")


def test_the_engines_whole_group_is_dead_afterwards():
    """The fake engine has a child of its own, which keeps the descriptor it was given."""
    reading, writing = os.pipe()
    run = make_claimed_run()
    supervise(
        run, command=[*FAKE_ENGINE, "wait"], keep_open=[writing], should_stop=lambda: has_started(run), timeouts=QUICK
    )
    os.close(writing)
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_the_heartbeat_is_renewed_while_the_engine_says_nothing():
    beats = set()

    def collect(run: Run) -> bool:
        beats.add(Run.objects.get(pk=run.pk).heartbeat_at)
        return len(beats) >= 4

    assert watch("wait", stop=collect).state == State.QUEUED


def test_whoever_watches_sees_the_lines_as_they_come():
    seen: list[LogLine] = []
    supervise(make_claimed_run(), command=[*FAKE_ENGINE, "ok"], on_line=seen.append, timeouts=QUICK)
    assert [line.message.split(":")[0] for line in seen] == [
        "Searching for the largest batch size",
        "batch 4 fits",
        "batch 8 fits",
        "batch 9",
    ]


def test_last_words_are_told_with_the_death():
    assert describe_death(-6, ["one", "two"]) == (
        "The engine was ended by signal 6 (Aborted) and gave no result. Its last output: one | two"
    )


def test_the_estimate_is_stored_beside_the_device_and_the_next_attempt_still_resumes() -> None:
    run = make_claimed_run()
    events = AttemptEvents(Lease(run_id=run.pk, token=run.token))
    events.add_facts(device=FACTS.to_dict(), environment={"torch": "0.0"})
    events.add_facts(estimate=prior_estimate(at_4=390 * MIB))
    events.add_probe(make_probe(4), is_carried=False)
    assert events.store()
    assert set(run.attempts.get().environment) == {"device", "environment", "estimate"}
    services.run_fail(run_id=run.pk, token=run.token, code="host_lost", message="gone")
    again = services.run_claim(device=run.device, owner="another")
    assert again is not None
    earlier = EarlierAttempt.from_dict(earlier_attempt(again))
    assert (earlier.carried(), earlier.boundary) == ([make_probe(4)], None)


def test_a_run_that_is_timed_again_starts_with_the_probes_of_the_first_on_its_device() -> None:
    first = make_measured_run()
    Measurement.objects.create(run=first, attempt=first.attempt, sequence=1, **probe_columns(make_probe(4)))
    again = services.run_again(run=first, requested_by=None, is_timing_only=True)
    assert (again.takes_over, again.requested_device, again.spec) == (first, first.device, first.spec)
    claimed = services.run_claim(device=first.device, owner="tester", run_id=again.pk)
    assert claimed is not None
    earlier = EarlierAttempt.from_dict(earlier_attempt(claimed))
    assert earlier.carried() == [make_probe(4)]
    assert first.result is not None
    assert earlier.boundary == from_json(Boundary, first.result["boundary"])


def test_only_a_finished_measurement_is_timed_again() -> None:
    with pytest.raises(SpecError, match="finished measurement"):
        services.run_again(run=make_claimed_run(), requested_by=None, is_timing_only=True)


def test_an_estimate_without_a_device_is_not_waited_for() -> None:
    run = make_claimed_run()
    events = AttemptEvents(Lease(run_id=run.pk, token=run.token))
    events.take([{"event": "estimate", "estimate": originals()["bert_tiny"]["estimate"]}])
    assert events.store()
    assert run.attempts.get().environment is None
