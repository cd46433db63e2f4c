"""kill -9 of any part of a worker, and what the engine does wrong: every run ends in a true state, nothing is lost."""

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


ENDS = {
    ("ok",): (State.FINISHED, "", 1),
    ("segfault",): (State.FINISHED, "", 2),
    ("segfault*",): (State.FAILED, "engine_crashed", 2),
    ("abort", "killed"): (State.FAILED, "engine_killed", 2),
    ("killed",): (State.FINISHED, "", 2),
    ("terminated",): (State.FINISHED, "", 2),
    ("worker_died",): (State.FINISHED, "", 2),
    ("worker_died", "segfault"): (State.FAILED, "engine_crashed", 2),
    ("cuda_oom",): (State.FAILED, "out_of_memory", 1),
    ("no_result",): (State.FAILED, "engine_died", 1),
    ("garbage",): (State.FINISHED, "", 1),
    ("flooding",): (State.FINISHED, "", 1),
    ("wrongly_typed",): (State.FAILED, "bad_result", 1),
    ("full_disk",): (State.FINISHED, "", 1),
}


def test_whatever_the_engine_does_the_run_ends_truly_and_the_worker_lives(fleet: Fleet):
    """F01, and a disk too full for the result's file."""
    card = fleet.card()
    runs = [fleet.run(card, *words) for words in ENDS]
    server = fleet.serve(card)
    ended = fleet.until_over(*runs, seconds=60)
    seen = {words: (run.state, run.error_code, run.attempt) for words, run in zip(ENDS, ended, strict=True)}
    assert seen == ENDS
    assert server.starts == 1


@pytest.mark.nightly
def test_a_hanging_engine_is_ended_and_given_one_more_try(fleet: Fleet):
    """F07: SIGTERM is not heard, so SIGKILL comes after the grace."""
    card = fleet.card()
    run = fleet.run(card, "hang")
    fleet.serve(card)
    hanging = fleet.until_started(run)
    (run,) = fleet.until_over(run, seconds=40)
    assert (run.state, run.attempt, run.attempts.get(number=1).cause) == (State.FINISHED, 2, "stalled")
    assert not is_alive(hanging)


def test_what_an_engine_left_on_the_card_is_dead_before_the_next_run(fleet: Fleet):
    """F08: a process in a session of its own outlives the engine's group and keeps the card."""
    card = fleet.card()
    runs = [fleet.run(card, "grandchild"), fleet.run(card)]
    server = fleet.serve(card)
    assert [run.state for run in fleet.until_over(*runs)] == [State.FINISHED, State.FINISHED]
    assert not any(map(is_alive, fleet.grandchildren()))
    assert server.starts == 1


@pytest.mark.parametrize(("word", "attempt"), [("daemon", 1), ("daemon_then_killed_supervisor", 2)])
def test_what_an_engine_left_without_any_lock_is_dead_before_the_next_run_ends(fleet: Fleet, word: str, attempt: int):
    """No lock and no parent's death tells of it: the worker, or its main process, took it in when it was orphaned."""
    card = fleet.card()
    runs = [fleet.run(card, word), fleet.run(card)]
    fleet.serve(card)
    assert [(run.state, run.attempt) for run in fleet.until_over(*runs)] == [
        (State.FINISHED, attempt),
        (State.FINISHED, 1),
    ]
    assert fleet.grandchildren()
    assert not any(map(is_alive, fleet.grandchildren()))


@pytest.mark.nightly
def test_what_a_dead_worker_left_on_the_card_is_dead_before_the_next_run(fleet: Fleet):
    """F11: the stray process is all that is left of the attempt."""
    card = fleet.card()
    runs = [fleet.run(card, "grandchild_then_killed_supervisor"), fleet.run(card)]
    fleet.serve(card)
    assert [(run.state, run.attempt) for run in fleet.until_over(*runs)] == [(State.FINISHED, 2), (State.FINISHED, 1)]
    assert not any(map(is_alive, fleet.grandchildren()))


@pytest.mark.nightly
def test_a_run_that_kills_its_worker_every_time_is_given_up(fleet: Fleet):
    """F12: after three attempts; the worker serves the next run."""
    card = fleet.card()
    killer, next_run = fleet.run(card, "kill_supervisor*"), fleet.run(card)
    fleet.serve(card)
    killer, next_run = fleet.until_over(killer, next_run, seconds=120)
    assert (killer.state, killer.attempt) == (State.INTERRUPTED, 3)
    assert (next_run.state, next_run.attempt) == (State.FINISHED, 1)


def test_a_finished_result_survives_everybody_who_should_have_heard_of_it(fleet: Fleet):
    """F13: the attempt that measured it is the one that counts."""
    card = fleet.card()
    run = fleet.run(card, "finished_but_unheard")
    fleet.serve(card)
    (run,) = fleet.until_over(run)
    assert (run.state, run.attempt, run.largest_batch_size) == (State.FINISHED, 1, 32)
    assert fleet.starts(run) == 1
