"""What a worker does with a run of several devices: all their locks or none, and an engine that sees exactly those."""

import pytest
from django_q.models import OrmQ

from analysis.models import Device, Run, State
from analysis.runs import services
from analysis.workers import supervisor, tasks
from analysis.workers.device_lock import device_lock, other_holder
from analysis.workers.fork_signs import Heartbeat, StopPipe
from analysis.workers.recovery import device_recover
from tests.factories import make_card, make_run, make_run_of_several
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch, settings) -> list[Device]:
    """Three cards; this process is the worker of the one whose UUID is the first, with the fake engine."""
    cards = [make_card(number, uuid=f"GPU-{name}") for number, name in enumerate("cab")]
    monkeypatch.setattr(tasks, "_context", tasks.WorkerContext(cards[1].pk, StopPipe(), Heartbeat()))
    monkeypatch.setattr(tasks, "_OTHERS_LOOK_SECONDS", 0.1)
    settings.ENGINE_COMMAND = (*FAKE_ENGINE, "ok")
    return cards


def claimed_set(cards: list[Device], count: int) -> Run:
    make_run_of_several(count)
    wanted = services.claim_next(device=cards[1], owner="worker")
    run = services.set_claim(wanted=wanted, owner="worker")
    assert run is not None
    return run


def test_a_wake_up_runs_it_on_all_and_wakes_the_workers_of_all_again(cards):
    run, after = make_run_of_several(3), [make_run(card) for card in cards]
    Run.objects.filter(pk__in=[each.pk for each in after]).update(priority=-1)
    OrmQ.objects.all().delete()
    assert tasks.wake() == f"run {run.pk}: finished"
    assert not Device.objects.exclude(held_for=None).exists()
    assert {message.key for message in OrmQ.objects.all()} == {card.queue_name for card in cards}


def test_none_is_kept_where_another_program_holds_one(cards):
    run = make_run_of_several(3)
    with device_lock(cards[0]):
        assert tasks.wake() == "busy"
    run.refresh_from_db()
    assert (run.state, run.attempt) == (State.QUEUED, 0)
    for card in cards:
        with device_lock(card):
            pass


def test_a_worker_that_starts_nothing_sends_itself_no_message(cards):
    make_run_of_several(3)
    Device.objects.filter(pk=cards[0].pk).update(held_process="process 7")
    OrmQ.objects.all().delete()
    assert tasks.wake() == "no run waits"
    assert not OrmQ.objects.exists()


def test_the_engine_sees_exactly_its_cards_in_the_order_of_their_numbers(cards):
    run = claimed_set(cards, 2)
    assert supervisor._only_cards(run) == {"CUDA_VISIBLE_DEVICES": "GPU-c,GPU-a"}
    assert '"device":"cuda"' in supervisor.engine_arguments(run)[1]


def test_cards_of_another_maker_are_told_by_their_numbers(cards):
    Device.objects.update(compute_capability="")
    run = claimed_set(cards, 2)
    assert supervisor._only_cards(run) == {"CUDA_VISIBLE_DEVICES": "0,1"}


@pytest.mark.parametrize("looks", [0, 1])
def test_whoever_locks_one_of_its_devices_after_its_death_recovers_it(cards, looks):
    run = claimed_set(cards, 2)
    assert device_recover(cards[2]) == 0
    assert device_recover(cards[looks]) == 1
    run.refresh_from_db()
    assert (run.state, run.attempts.get().cause) == (State.QUEUED, "owner_died")
    assert not Device.objects.exclude(held_for=None).exists()


def test_a_device_of_a_set_is_held_by_no_other_program(cards):
    claimed_set(cards, 2)
    with device_lock(cards[0]), device_lock(cards[2]):
        assert other_holder(cards[0]) is None
