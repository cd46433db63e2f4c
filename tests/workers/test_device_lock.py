"""One process at a time works on a device, and a run of several has all their locks or none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django_q.models import OrmQ

from analysis.models import Device, Host, Run, State
from analysis.runs import services
from analysis.workers import supervisor, tasks
from analysis.workers.device_lock import device_lock, lock_path, other_holder
from analysis.workers.fork_signs import Heartbeat, StopPipe
from analysis.workers.recovery import device_recover
from engine.errors import DeviceBusy
from engine.machine.device_lock import _started
from tests.factories import make_card, make_device, make_run, make_run_of_several
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]


def test_devices_do_not_lock_each_other():
    with device_lock(make_device()), device_lock(make_device(device="cuda:0")) as descriptor:
        assert descriptor > 0


def test_a_child_that_inherited_the_lock_keeps_the_device_busy_until_it_is_dead():
    device = make_device()
    with device_lock(device) as descriptor:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[descriptor])
    with pytest.raises(DeviceBusy), device_lock(device):
        pass
    child.communicate(b"\n")
    with device_lock(device, wait_seconds=5):
        pass


LEAVES = (
    "import os, subprocess, sys\nfrom pathlib import Path\nfrom engine.machine.device_lock import held\n"
    "with held(Path(sys.argv[1]), 'cpu') as lock:\n"
    "    left = subprocess.Popen(['sleep', '60'], pass_fds=[lock], stdout=subprocess.DEVNULL)\n"
    "    print(left.pid, flush=True)\n    os._exit(0)"
)


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are found through /proc")
def test_what_a_dead_holder_left_is_killed_and_one_that_merely_waits_is_not():
    device = make_device()
    path = lock_path(device)
    left = subprocess.run([sys.executable, "-c", LEAVES, str(path)], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    with path.open() as waiting:
        bystander = subprocess.Popen(["sleep", "60"], pass_fds=[waiting.fileno()])
    with device_lock(device, wait_seconds=5):
        assert _started(int(left.stdout)) is None
        assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_card_has_one_lock_whatever_row_or_host_it_is_known_by():
    card = make_device(device="cuda:0", uuid="GPU-1")
    assert lock_path(card) == lock_path(Device(host=Host(name="elsewhere"), device="cuda:3", uuid="GPU-1"))


def test_a_lock_file_that_was_removed_while_held_is_not_trusted():
    device = make_device()
    with device_lock(device):
        lock_path(device).unlink()
        with device_lock(device) as descriptor:
            assert os.path.samestat(lock_path(device).stat(), os.fstat(descriptor))


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
