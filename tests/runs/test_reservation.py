"""Rules on plain values: devices of one host, another attempt, and the kinds of run."""

import random
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import get_args

import pytest

from analysis.models import RunKind, State
from analysis.runs.kinds import BY_KIND, spec_columns
from analysis.runs.kinds.rules import Spec
from analysis.runs.queue.reservation import Seat, WaitingRun, starts
from analysis.runs.queue.retry_policy import Cause, decide_retry, describe_attempts
from engine.estimate.spec import EstimateSpec
from engine.questions.faster.spec import FasterSpec
from engine.questions.validation.spec import ValidationSpec
from engine.recording.spec import WatchSpec
from engine.trainings.script.faster.spec import OWN, OwnRaceSpec
from engine.trainings.script.spec import TuneSpec
from tests.factories import make_spec

LONG, SHORT = 600.0, 60.0


def job(
    name: str, device_count: int = 1, most_seconds: float = LONG, *, usable: Iterable[int] = range(20)
) -> WaitingRun:
    return WaitingRun(name, None, 0, datetime.now(UTC), frozenset(usable), device_count, most_seconds=most_seconds)


def seats(*free_after: float | None, host: int = 1, first: int = 1) -> list[Seat]:
    return [Seat(first + number, host, seconds) for number, seconds in enumerate(free_after)]


def started(runs: list[WaitingRun], places: list[Seat], **how: object) -> dict[str, tuple[int, ...]]:
    return {each.run.run_id: each.device_ids for each in starts(runs, places, **how)}


def test_enough_free_devices_of_one_host_are_taken_together():
    assert started([job("pair", 2), job("one")], seats(0, 0, 0)) == {"pair": (1, 2), "one": (3,)}


def test_devices_of_two_hosts_are_no_set():
    assert started([job("pair", 2)], [*seats(0), *seats(0, host=2, first=5)]) == {}
    assert started([job("pair", 2)], [*seats(0), *seats(0, 0, host=2, first=5)]) == {"pair": (5, 6)}


def test_none_is_taken_where_one_is_missing_and_no_longer_run_behind_takes_it():
    assert started([job("pair", 2), job("long")], seats(0, 300)) == {}


def test_a_run_behind_starts_on_a_reserved_device_if_its_time_budget_ends_before_that():
    assert started([job("pair", 2), job("long"), job("short", 1, SHORT)], seats(0, 300)) == {"short": (1,)}
    assert started([job("pair", 2), job("short", 1, SHORT)], seats(0, SHORT - 1)) == {}


def test_only_so_many_devices_are_reserved_as_are_needed_the_soonest():
    """Of four devices the pair waits for the one that is free after 100 s: the other free one is anybody's."""
    assert started([job("pair", 2), job("four", 4), job("one")], seats(0, 900, 100, 0)) == {"pair": (1, 4)}
    assert started([job("three", 3), job("one")], seats(0, 900, 100, 0)) == {}
    assert started([job("three", 3), job("one")], [*seats(0, 900, 100, 0), *seats(0, host=2, first=9)]) == {"one": (9,)}


def test_the_host_on_which_it_starts_soonest_is_reserved_and_the_other_is_free_for_all():
    places = [*seats(0, 900), *seats(0, 100, host=2, first=5)]
    assert started([job("pair", 2), job("one"), job("two")], places) == {"one": (1,)}


def test_two_runs_of_several_devices_reserve_two_hosts():
    places = [*seats(0, 100), *seats(0, 200, host=2, first=5), *seats(0, host=3, first=9)]
    assert started([job("a", 2), job("b", 2), job("one"), job("two")], places) == {"one": (9,)}


def test_a_device_of_which_nobody_knows_when_it_is_free_is_no_part_of_a_reservation():
    assert started([job("pair", 2), job("one")], seats(0, None)) == {"one": (1,)}


def test_a_run_of_one_device_before_it_takes_what_would_be_reserved():
    assert started([job("one"), job("pair", 2)], seats(0, 100)) == {"one": (1,)}


def test_the_worker_that_looks_gets_the_run_of_one_device_and_never_changes_a_set():
    runs = [job("pair", 2), job("one")]
    for looks in (3, 4):
        assert started(runs, seats(0, 0, 0, 0), prefers=looks) == {"pair": (1, 2), "one": (looks,)}


def test_a_run_takes_only_devices_that_it_may_use():
    pair = job("pair", 2, usable=(2, 3))
    assert started([pair, job("one")], seats(0, 0, 0)) == {"pair": (2, 3), "one": (1,)}


@pytest.mark.parametrize("seed", range(40))
def test_a_run_of_several_devices_starts_at_the_latest_when_the_budgets_are_over(seed: int):
    """Whatever comes behind it: once it is first, it waits for what ran then and for nothing that started later."""
    chance = random.Random(seed)
    places = {number: chance.choice((0.0, float(chance.randrange(1, 600)))) for number in range(1, 9)}
    whole = job("whole", 8)
    now, latest = 0.0, max(places.values())
    while True:
        behind = [job(f"{n}", 1, float(chance.randrange(1, 600))) for n in range(chance.randrange(6))]
        behind += [job("few", chance.randrange(2, 5), float(chance.randrange(1, 600)))]
        view = [Seat(number, 1, max(0.0, until - now)) for number, until in places.items()]
        found = list(starts([whole, *behind], view))
        if any(each.run is whole for each in found):
            break
        for each in found:
            for number in each.device_ids:
                places[number] = now + chance.uniform(0.1, 1.0) * each.run.most_seconds
        now = min(until for until in places.values() if until > now)
    assert now <= latest


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


@pytest.mark.parametrize(("cause", "state"), [(Cause.HOST_LOST, State.INTERRUPTED), ("time_out", State.FAILED)])
def test_a_reported_run_gets_no_other_attempt(cause: str, state: State) -> None:
    assert decide_retry(cause, [], is_reported=True).state == state


def test_every_type_of_a_spec_is_of_exactly_one_kind() -> None:
    types = [each for rules in BY_KIND.values() for each in rules.spec_types]
    assert set(types) == set(get_args(Spec))
    assert len(types) == len(set(types))


@pytest.mark.parametrize(
    ("spec", "kind", "empty"),
    [
        (make_spec(), "measurement", ()),
        (TuneSpec(("train", "{batch_size}")), "command", ("precision", "optimizer")),
        (EstimateSpec(make_spec(memory_limit_bytes=2**30), "a10"), "estimate", ("needs_bytes",)),
        (ValidationSpec("bert-tiny"), "validation", ("current_batch_size",)),
        (FasterSpec("bert-tiny"), "race", ()),
        (OwnRaceSpec(("train",), batch=OWN), "own_race", ("precision", "optimizer")),
        (WatchSpec(("train",)), "watch", ("precision", "optimizer", "current_batch_size", "needs_bytes")),
    ],
    ids=list(RunKind),
)
def test_a_spec_decides_the_kind_and_what_is_known_of_a_run(spec: Spec, kind: str, empty: tuple[str, ...]) -> None:
    columns = spec_columns(spec)
    assert columns["kind"] == kind
    assert all(columns.get(name) is None for name in empty)
