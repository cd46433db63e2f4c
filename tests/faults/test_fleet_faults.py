"""Several hosts, portals and cards: each run once, all of its cards or none, one engine per card."""

import signal
import time

import pytest

from analysis.models import Device, State
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from tests.factories import make_spec
from tests.faults.fleet import Fleet, engines, freeze_between_writes, kill
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# where nothing is killed, what a busy machine delays must not be taken for a death
PATIENT = {f"MEMORYMARK_RUN_{limit}_SECONDS": "60" for limit in ("LEASE", "SUSPECT", "STALL")}


def test_a_supervisor_that_thaws_after_the_takeover_changes_nothing(fleet: Fleet):
    """F09: it was frozen past its lease; another host measured meanwhile."""
    frozen, other = fleet.card(0, "lab-1"), fleet.card(0, "lab-2")
    server = fleet.serve_until_ready(frozen, FAKE_ENGINE_PROBE_SECONDS="1.2")
    run = services.run_create(spec=make_spec(device="cuda"), place=Placement(kind="cuda"))
    engine = fleet.until_measuring(run)
    parts = [server.part(part) for part in ("main", "sentinel", "worker", "engine")]
    freeze_between_writes(parts)
    fleet.serve(other, look_seconds=0.5)
    (taken,) = fleet.until_over(run)
    for pid in reversed(parts):
        kill(pid, signal.SIGCONT)
    assert (taken.state, taken.attempt, taken.device_id) == (State.FINISHED, 2, other.pk)
    wait_until(lambda: server.part("engine") != engine, seconds=10)
    run.refresh_from_db()
    assert (run.state, run.attempt, run.token, run.result) == (State.FINISHED, 2, taken.token, taken.result)


@pytest.mark.nightly
def test_thirty_runs_on_four_cards_run_once_each(fleet: Fleet):
    """F10."""
    cards = [fleet.card(number) for number in range(4)]
    runs = [fleet.run(cards[number % 4]) for number in range(30)]
    for card in cards:
        fleet.serve(card, **PATIENT)
    ended = fleet.until_over(*runs, seconds=120)
    assert {(run.state, run.attempt) for run in ended} == {(State.FINISHED, 1)}, fleet.told()
    assert [fleet.starts(run) for run in runs] == [1] * 30


def test_two_portals_on_one_machine_share_a_card_in_turns(fleet: Fleet):
    """Two workers for one card, each with its own data folder; the lock folder is the machine's."""
    card = fleet.card()
    runs = [fleet.run(card) for _ in range(4)]
    fleet.serve(card, **PATIENT)
    fleet.serve(card, **PATIENT, MEMORYMARK_DATA_DIR=str(fleet.folder / "other-data"))
    ended = fleet.until_over(*runs, seconds=60)
    assert [(run.state, run.attempt) for run in ended] == [(State.FINISHED, 1)] * 4, fleet.told()
    assert [fleet.starts(run) for run in runs] == [1] * 4


def test_idle_default_workers_of_four_hosts_give_signs_of_life_without_a_message(fleet: Fleet):
    """They share one queue, so whose message it is depends on luck: here nobody gets one after the start."""
    servers = [fleet.serve_without_device(f"lab-{n}", look_seconds=600, frozen_seconds=8) for n in range(4)]
    fleet.until(lambda: all(server.is_ready for server in servers))
    ends_at = time.monotonic() + 20
    fleet.until(lambda: time.monotonic() >= ends_at)
    assert [server.starts for server in servers] == [1] * 4


@pytest.mark.parametrize("part", ["worker", "pusher"])
def test_an_idle_default_worker_of_which_a_process_is_frozen_is_replaced(fleet: Fleet, part: str):
    server = fleet.serve_without_device("lab-1", look_seconds=1, frozen_seconds=8)
    fleet.until(lambda: server.is_ready)
    kill(server.part(part), signal.SIGSTOP)
    fleet.until(lambda: server.starts == 2)
    assert f"no sign of life from the {part}" in server.log.read_text()


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
