"""The rule of the queue for runs that need several devices of one host, on plain values."""

import random
from dataclasses import dataclass

import pytest

from analysis.runs.queue.reservation import Seat, starts

LONG, SHORT = 600.0, 60.0


@dataclass(frozen=True)
class Job:
    """A run of the queue, with its name."""

    name: str
    device_count: int = 1
    most_seconds: float = LONG


def seats(*free_after: float | None, host: int = 1, first: int = 1) -> list[Seat]:
    return [Seat(first + number, host, seconds) for number, seconds in enumerate(free_after)]


def started(runs: list[Job], places: list[Seat], **how: object) -> dict[str, tuple[int, ...]]:
    return {each.run.name: each.device_ids for each in starts(runs, places, lambda run, device: True, **how)}


def test_enough_free_devices_of_one_host_are_taken_together():
    assert started([Job("pair", 2), Job("one")], seats(0, 0, 0)) == {"pair": (1, 2), "one": (3,)}


def test_devices_of_two_hosts_are_no_set():
    assert started([Job("pair", 2)], [*seats(0), *seats(0, host=2, first=5)]) == {}
    assert started([Job("pair", 2)], [*seats(0), *seats(0, 0, host=2, first=5)]) == {"pair": (5, 6)}


def test_none_is_taken_where_one_is_missing_and_no_longer_run_behind_takes_it():
    assert started([Job("pair", 2), Job("long")], seats(0, 300)) == {}


def test_a_run_behind_starts_on_a_reserved_device_if_its_time_budget_ends_before_that():
    assert started([Job("pair", 2), Job("long"), Job("short", 1, SHORT)], seats(0, 300)) == {"short": (1,)}
    assert started([Job("pair", 2), Job("short", 1, SHORT)], seats(0, SHORT - 1)) == {}


def test_only_so_many_devices_are_reserved_as_are_needed_the_soonest():
    """Of four devices the pair waits for the one that is free after 100 s: the other free one is anybody's."""
    assert started([Job("pair", 2), Job("four", 4), Job("one")], seats(0, 900, 100, 0)) == {"pair": (1, 4)}
    assert started([Job("three", 3), Job("one")], seats(0, 900, 100, 0)) == {}
    assert started([Job("three", 3), Job("one")], [*seats(0, 900, 100, 0), *seats(0, host=2, first=9)]) == {"one": (9,)}


def test_the_host_on_which_it_starts_soonest_is_reserved_and_the_other_is_free_for_all():
    places = [*seats(0, 900), *seats(0, 100, host=2, first=5)]
    assert started([Job("pair", 2), Job("one"), Job("two")], places) == {"one": (1,)}


def test_two_runs_of_several_devices_reserve_two_hosts():
    places = [*seats(0, 100), *seats(0, 200, host=2, first=5), *seats(0, host=3, first=9)]
    assert started([Job("a", 2), Job("b", 2), Job("one"), Job("two")], places) == {"one": (9,)}


def test_a_device_of_which_nobody_knows_when_it_is_free_is_no_part_of_a_reservation():
    assert started([Job("pair", 2), Job("one")], seats(0, None)) == {"one": (1,)}


def test_a_run_of_one_device_before_it_takes_what_would_be_reserved():
    assert started([Job("one"), Job("pair", 2)], seats(0, 100)) == {"one": (1,)}


def test_the_worker_that_looks_gets_the_run_of_one_device_and_never_changes_a_set():
    runs = [Job("pair", 2), Job("one")]
    for looks in (3, 4):
        assert started(runs, seats(0, 0, 0, 0), prefers=looks) == {"pair": (1, 2), "one": (looks,)}


def test_a_run_takes_only_devices_that_it_may_use():
    found = starts([Job("pair", 2), Job("one")], seats(0, 0, 0), lambda run, device: run.name == "one" or device > 1)
    assert {each.run.name: each.device_ids for each in found} == {"pair": (2, 3), "one": (1,)}


@pytest.mark.parametrize("seed", range(40))
def test_a_run_of_several_devices_starts_at_the_latest_when_the_budgets_are_over(seed: int):
    """Whatever comes behind it: once it is first, it waits for what ran then and for nothing that started later."""
    chance = random.Random(seed)
    places = {number: chance.choice((0.0, float(chance.randrange(1, 600)))) for number in range(1, 9)}
    whole = Job("whole", 8)
    now, latest = 0.0, max(places.values())
    while True:
        behind = [Job(f"{n}", 1, float(chance.randrange(1, 600))) for n in range(chance.randrange(6))]
        behind += [Job("few", chance.randrange(2, 5), float(chance.randrange(1, 600)))]
        view = [Seat(number, 1, max(0.0, until - now)) for number, until in places.items()]
        found = list(starts([whole, *behind], view, lambda run, device: True))
        if any(each.run is whole for each in found):
            break
        for each in found:
            for number in each.device_ids:
                places[number] = now + chance.uniform(0.1, 1.0) * each.run.most_seconds
        now = min(until for until in places.values() if until > now)
    assert now <= latest
