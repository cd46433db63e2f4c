"""Runs of several cards on real workers: all or none, free again whoever dies, and no worker waits for another."""

import pytest

from analysis.models import Device, State
from tests.faults.fleet import Fleet, engines, kill
from tests.faults.test_fleet_faults import PATIENT

pytestmark = pytest.mark.slow


def test_a_killed_worker_that_holds_two_cards_leaves_both_free(fleet: Fleet):
    first, second = fleet.card(0), fleet.card(1)
    server = fleet.serve_until_ready(first, FAKE_ENGINE_PROBE_SECONDS="0.6")
    run = fleet.run_of_several(2)
    fleet.until_measuring(run)
    assert set(Device.objects.filter(held_for=run)) == {first, second}
    kill(server.part("worker"))
    (run,) = fleet.until_over(run)
    assert (run.state, run.attempt) == (State.FINISHED, 2), fleet.told()
    assert run.measurements.filter(attempt=2, is_carried=True).exists()
    assert not Device.objects.exclude(held_for=None).exists()
    assert engines(fleet.folder) == []


def test_pairs_and_single_runs_on_three_cards_all_end(fleet: Fleet):
    cards = [fleet.card(number) for number in range(3)]
    pairs = [fleet.run_of_several(2) for _ in range(2)]
    singles = [fleet.run(cards[number]) for number in range(3)]
    for card in cards:
        fleet.serve(card, **PATIENT)
    ended = fleet.until_over(*pairs, *singles, seconds=90)
    assert [(run.state, run.attempt) for run in ended] == [(State.FINISHED, 1)] * 5, fleet.told()
    assert [fleet.starts(run) for run in (*pairs, *singles)] == [1] * 5
    assert not Device.objects.exclude(held_for=None).exists()
