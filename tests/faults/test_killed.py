"""kill -9 of any part of a worker, and orderly stops: nothing is lost, nothing runs twice, nothing is left behind."""

import os
import signal
import time

import pytest

from analysis.models import Run, State
from analysis.runs import services
from tests.faults.fleet import Fleet, Server, engines, is_alive, kill
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
PARTS = ("worker", "sentinel", "main", "monitor", "pusher", "engine")
STOP_SECONDS = 20  # seen: under a second when quiet; a worker that was not told to stop would go on for minutes
SLOW = {"FAKE_ENGINE_PROBE_SECONDS": "0.6"}


def kill_in_mid_run(fleet: Fleet, server: Server, run: Run, part: str) -> None:
    engine = fleet.until_measuring(run)
    kill(server.part(part))
    wait_until(lambda: not is_alive(engine), seconds=1)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_killed_in_mid_run_costs_one_attempt_and_no_measurement(fleet: Fleet, part: str):
    """F02: the engine is dead within a second, the second attempt goes on where the first was, the next run is fine."""
    card = fleet.card()
    server = fleet.serve_until_ready(card, **SLOW)
    run, next_run = fleet.run(card), fleet.run(card)
    kill_in_mid_run(fleet, server, run, part)
    run, next_run = fleet.until_over(run, next_run)
    assert (run.state, run.attempt, run.largest_batch_size) == (State.FINISHED, 2, 32)
    assert run.measurements.filter(attempt=2, is_carried=True).exists()
    assert (next_run.state, next_run.attempt) == (State.FINISHED, 1)


@pytest.mark.nightly
def test_everything_killed_at_once_is_the_same(fleet: Fleet):
    """F02, as a power cut is for processes."""
    card = fleet.card()
    server = fleet.serve_until_ready(card, **SLOW)
    run = fleet.run(card)
    fleet.until_measuring(run)
    for pid in filter(None, map(server.part, PARTS)):
        kill(pid)
    (run,) = fleet.until_over(run)
    assert (run.state, run.attempt) == (State.FINISHED, 2)


def test_an_idle_worker_that_is_killed_serves_the_next_run(fleet: Fleet):
    """F03: django-q2 alone would look alive for ever."""
    card = fleet.card()
    server = fleet.serve_until_ready(card)
    kill(server.part("worker"))
    (run,) = fleet.until_over(fleet.run(card))
    assert (run.state, run.attempt, server.starts) == (State.FINISHED, 1, 2)


@pytest.mark.nightly
def test_a_frozen_worker_is_replaced(fleet: Fleet):
    """F14: a process that is stopped is not dead; the age of its sign of life tells."""
    card = fleet.card()
    server = fleet.serve_until_ready(card, look_seconds=0.5, frozen_seconds=4, **SLOW)
    run = fleet.run(card)
    fleet.until_measuring(run)
    kill(server.part("worker"), signal.SIGSTOP)
    (run,) = fleet.until_over(run)
    assert (run.state, server.starts) == (State.FINISHED, 2)


def stop(server: Server, *, whole_group: bool) -> float:
    server.is_kept = False
    asked_at = time.monotonic()
    (os.killpg if whole_group else os.kill)(server.main, signal.SIGTERM)
    assert server.process is not None
    assert server.process.wait(10) == 0
    return time.monotonic() - asked_at


@pytest.mark.parametrize("whole_group", [True, False])
def test_a_worker_that_is_asked_to_stop_gives_its_run_back(fleet: Fleet, whole_group: bool):
    """F15: the attempt does not count, and the next worker goes on."""
    card = fleet.card()
    server = fleet.serve_until_ready(card, **SLOW)
    run = fleet.run(card)
    engine = fleet.until_measuring(run)
    assert stop(server, whole_group=whole_group) < STOP_SECONDS
    run.refresh_from_db()
    assert (run.state, run.attempts.get().counted) == (State.QUEUED, False)
    assert not is_alive(engine)


def test_an_idle_worker_stops_at_once(fleet: Fleet):
    """F15."""
    server = fleet.serve_until_ready(fleet.card())
    assert stop(server, whole_group=True) < STOP_SECONDS


@pytest.mark.parametrize("word", ["ok", "hang"])
def test_a_cancelled_run_has_no_engine_left(fleet: Fleet, word: str):
    """F06: one that hears SIGTERM, and one that is stuck."""
    card = fleet.card()
    fleet.serve_until_ready(card, **SLOW)
    run = fleet.run(card, word)
    engine = fleet.until_started(run)
    services.runs_cancel(run_ids=[run.pk])
    (run,) = fleet.until_over(run)
    assert (run.state, run.attempt) == (State.CANCELLED, 1)
    assert not is_alive(engine)


def test_a_cancelled_run_whose_worker_is_killed_too_is_cancelled(fleet: Fleet):
    """F06: nobody is left to hear it; the next worker does."""
    card = fleet.card()
    server = fleet.serve_until_ready(card)
    run = fleet.run(card, "hang")
    fleet.until_started(run)
    services.runs_cancel(run_ids=[run.pk])
    kill(server.part("worker"))
    (run,) = fleet.until_over(run)
    assert run.state == State.CANCELLED
    assert engines(fleet.folder) == []
