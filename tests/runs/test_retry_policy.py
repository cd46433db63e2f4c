"""Who is to blame for an attempt without a result, and what follows for the run."""

import pytest

from analysis.models import State
from analysis.runs.queue.retry_policy import Cause, decide_retry, describe_attempts


@pytest.mark.parametrize(
    ("earlier", "cause", "state"),
    [
        ([], Cause.OWNER_DIED, State.QUEUED),
        ([Cause.OWNER_DIED], Cause.HOST_LOST, State.QUEUED),
        ([Cause.OWNER_DIED, Cause.HOST_LOST], Cause.OWNER_DIED, State.INTERRUPTED),
        ([], Cause.ENGINE_CRASHED, State.QUEUED),
        ([Cause.ENGINE_KILLED], Cause.ENGINE_CRASHED, State.FAILED),
        ([], Cause.ENGINE_WORKER_DIED, State.QUEUED),
        ([Cause.ENGINE_WORKER_DIED], Cause.ENGINE_WORKER_DIED, State.FAILED),
        ([], "worker_failed", State.FAILED),
        ([Cause.OWNER_DIED], Cause.STALLED, State.QUEUED),
        ([Cause.OWNER_DIED, Cause.OWNER_DIED], Cause.STALLED, State.FAILED),
        ([], "workload_failed", State.FAILED),
        ([], "time_out", State.FAILED),
    ],
)
def test_a_run_gets_another_attempt_as_long_as_it_may_not_be_to_blame(earlier, cause, state):
    assert decide_retry(cause, earlier).state == state


def test_a_worker_that_is_stopped_costs_the_run_nothing_however_often():
    follows = decide_retry(Cause.WORKER_STOPPED, [Cause.OWNER_DIED, Cause.OWNER_DIED])
    assert (follows.state, follows.counted) == (State.QUEUED, False)


@pytest.mark.parametrize("cause", [*Cause, "workload_failed"])
def test_a_run_that_shall_be_cancelled_is_cancelled_whatever_ended_it(cause):
    assert decide_retry(cause, [], cancel_requested=True).state == State.CANCELLED


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        ([Cause.OWNER_DIED] * 3, "Given up after 3 attempts: its worker died 3 times."),
        (
            [Cause.OWNER_DIED, Cause.ENGINE_KILLED, Cause.OWNER_DIED],
            "Given up after 3 attempts: its worker died 2 times, something killed its engine once.",
        ),
        (
            [Cause.STALLED, Cause.HOST_LOST, Cause.OWNER_DIED],
            "Given up after 3 attempts: its engine made no progress once, its host stopped responding once, "
            "its worker died once.",
        ),
    ],
)
def test_a_run_that_is_given_up_tells_what_happened_in_each_attempt(causes, expected):
    assert describe_attempts(causes) == expected


def test_every_cause_that_counts_has_its_words():
    assert all(cause.value not in describe_attempts([cause]) for cause in Cause if cause != Cause.WORKER_STOPPED)
