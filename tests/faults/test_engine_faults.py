"""What the engine does wrong: every run ends in a true state, and the worker goes on as before."""

import pytest

from analysis.models import State
from tests.faults.fleet import Fleet, is_alive

pytestmark = pytest.mark.slow

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
