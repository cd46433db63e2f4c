"""The rule of the queue on plain values, and the forecast that plays it forward."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from analysis.models import Run
from analysis.presentation.run_state import describe_phase
from analysis.runs.queue.forecast import queue_positions
from analysis.runs.queue.reservation import WaitingRun
from analysis.runs.queue.scheduling import (
    FORECAST_STARTS_MAX,
    PlayedDevice,
    QueuePosition,
    forecast,
    may_run,
    turn,
)
from engine.text.units import GIB
from tests.factories import make_card, make_claimed_run, make_run
from tests.runs.test_claim import claim, finish, submit

pytestmark = pytest.mark.django_db

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ANY = frozenset({1, 2})


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def waiting(
    run_id: int, person: int | None = 1, *, seconds: float | None = 60.0, usable: frozenset[int] = ANY
) -> WaitingRun:
    return WaitingRun(run_id, person, 0, at(run_id), usable, typical_seconds=seconds)


def played(runs: list[WaitingRun], *cards: PlayedDevice) -> dict[int, QueuePosition]:
    return forecast(runs, cards or (PlayedDevice(1, "A100"),), now=NOW, running={}, last_started={})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (turn(1, 1, at(9), 5), turn(2, 0, at(0))),
        (turn(1, 0, at(9)), turn(2, 0, at(0), 1)),
        (turn(1, 0, at(9)), turn(2, 0, at(0), 0, at(0))),
        (turn(1, 0, at(9), 0, at(1)), turn(2, 0, at(0), 0, at(2))),
        (turn(1, 0, at(1)), turn(2, 0, at(2))),
        (turn(None, 0, at(1)), turn(2, 0, at(2))),
    ],
)
def test_whose_turn_it_is(first, second):
    assert first < second


def test_positions_and_times_follow_the_rule():
    expected = played([waiting(1), waiting(2), waiting(3, person=2)])
    assert expected == {1: QueuePosition(1, at(0)), 3: QueuePosition(2, at(1)), 2: QueuePosition(3, at(2))}


def test_the_device_that_is_free_first_takes_the_next_run():
    busy = PlayedDevice(1, "A100", 100.0, 100.0), PlayedDevice(2, "H100", 30.0, 30.0)
    expected = played([waiting(1), waiting(2)], *busy)
    assert expected == {1: QueuePosition(1, at(0.5)), 2: QueuePosition(2, at(1.5))}


@pytest.mark.parametrize("start", [None, NOW])
def test_a_time_that_rests_on_an_unknown_one_is_unknown(start):
    expected = played([waiting(1, seconds=None), waiting(2)], PlayedDevice(1, "A100", is_known=start is not None))
    assert [expected[1].start_at, expected[2].start_at] == [start, None]
    assert [expected[1].position, expected[2].position] == [1, 2]


def test_a_run_that_no_device_may_take_has_no_position():
    expected = played([waiting(1, usable=frozenset({3})), waiting(2)])
    assert expected == {2: QueuePosition(1, at(0))}


def test_the_database_and_the_forecast_agree_on_what_may_start_where(alice):
    cards = [
        make_card(0),
        make_card(1, name="NVIDIA T4", compute_capability="7.5", capacity_bytes=4 * GIB),
        make_card(2, compute_capability="gfx90a", foreign_used_bytes=GIB),
    ]
    asks = product((None, cards[0]), ("", "a1", "T4"), (None, 6 * GIB), (None, 8.0), (False, True))
    for number, (device, device_class, needs, capability, accepts) in enumerate(asks):
        run = make_run(cards[0], current_batch_size=number + 1)
        Run.objects.filter(pk=run.pk).update(
            requested_device=device,
            requested_device_class="" if device else device_class,
            needs_bytes=needs,
            needs_compute_capability=capability,
            accepts_shared_device=accepts,
        )
    for card in cards:
        by_rule = {run.pk for run in Run.objects.all() if may_run(run, card)}
        assert by_rule == set(Run.objects.waiting_for(card).values_list("pk", flat=True))
        assert by_rule


def test_runs_start_in_the_order_that_was_forecast(alice, root):
    card = make_card()
    runs = [submit(by=(alice, root, None)[number % 3], priority=-(number % 2)) for number in range(9)]
    expected = queue_positions(runs)
    started = []
    while run := claim(card):
        finish(run)
        started.append(run.pk)
    assert started == sorted(expected, key=lambda run_id: expected[run_id].position)


def test_what_runs_is_expected_to_take_as_long_as_runs_of_its_model_did():
    card = make_card()
    done = make_claimed_run(card)
    Run.objects.filter(pk=done.pk).update(state="finished", started_at=at(0), finished_at=at(10))
    under_way = make_claimed_run(card)
    turn = queue_positions([next_run := make_run(card)])[next_run.pk]
    assert turn.position == 1
    assert abs(turn.start_at - under_way.started_at - timedelta(minutes=10)) < timedelta(seconds=5)


def test_of_a_run_far_back_only_that_is_said():
    make_card()
    runs = [submit() for _ in range(FORECAST_STARTS_MAX + 1)]
    turns = queue_positions(runs)
    *_, last, far = (turns[run.pk] for run in runs)
    assert (last.position, far) == (FORECAST_STARTS_MAX, QueuePosition(None))
    assert describe_phase(runs[-1], far) == "Waiting: more than 50 runs before it."


def test_no_position_is_worked_out_while_too_many_wait(monkeypatch):
    card = make_card()
    runs = [make_run(card), make_run(card)]
    monkeypatch.setattr("analysis.runs.queue.queue_now.READ_MAX", 2)
    assert len(queue_positions(runs)) == 2
    make_run(card)
    assert queue_positions(runs) == {}


def test_an_allow_list_holds_in_the_forecast(alice):
    card = make_card()
    card.allowed_users.add(alice)
    hers = submit(by=alice)
    other = make_run(make_card(1))
    Run.objects.filter(pk=other.pk).update(requested_device=card)
    assert set(queue_positions([hers, other])) == {hers.pk}


def test_a_forecast_asks_as_often_for_many_runs_as_for_one(django_assert_max_num_queries):
    make_card()
    runs = [submit() for _ in range(20)]
    with django_assert_max_num_queries(8):
        assert len(queue_positions(runs)) == 20
