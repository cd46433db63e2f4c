"""Several workers ask at once: each run goes to exactly one."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from django.db import connections

from analysis.models import Device, Run, State
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from tests.factories import make_card, make_device, make_result, make_run, make_run_of_several, make_spec

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")
CLAIMERS = 4


def at_once(work: Callable[[int], T]) -> list[T]:
    """Run `work` in several threads that start together, each with its own database connection."""
    barrier = threading.Barrier(CLAIMERS)

    def started_together(number: int) -> T:
        barrier.wait()
        try:
            return work(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(CLAIMERS) as pool:
        return list(pool.map(started_together, range(CLAIMERS)))


def test_of_many_claimers_of_one_run_exactly_one_wins():
    run = make_run()
    won = at_once(lambda number: services.run_claim(device=run.requested_device, owner=str(number)))
    assert len([claimed for claimed in won if claimed]) == 1
    assert Run.objects.get(pk=run.pk).attempt == 1


@pytest.mark.slow
def test_twenty_runs_are_each_done_once_by_four_workers_of_one_device():
    device = make_device()
    runs = [make_run(device) for _ in range(20)]
    result = make_result().to_dict()

    def work(number: int) -> list[int]:
        done = []
        while Run.objects.waiting_for(device).exists():
            if run := services.run_claim(device=device, owner=str(number)):
                assert services.run_finish(run_id=run.pk, token=run.token, result=result)
                done.append(run.pk)
        return done

    done = sorted(pk for each in at_once(work) for pk in each)
    assert done == sorted(run.pk for run in runs)
    assert set(Run.objects.values_list("state", "attempt")) == {(State.FINISHED, 1)}


def test_four_devices_claim_their_own_runs_at_the_same_time():
    devices = [make_device(device=f"cuda:{number}", kind="cuda") for number in range(CLAIMERS)]
    for device in devices:
        make_run(device)

    def claim(number: int) -> Device | None:
        run = services.run_claim(device=devices[number], owner=str(number))
        return run.device if run else None

    assert at_once(claim) == devices


def test_pairs_and_single_runs_that_are_claimed_at_once_never_share_a_device():
    """By the rows alone, as without the locks of one machine."""
    cards = [make_card(number, uuid=f"GPU-{number}") for number in range(CLAIMERS)]
    runs = [make_run_of_several(2) for _ in range(3)]
    runs += [services.run_create(spec=make_spec(), place=Placement(kind="cuda")) for _ in range(5)]
    result, busy, guard = make_result().to_dict(), set[int](), threading.Lock()
    ends_at = time.monotonic() + 60

    def work(number: int) -> list[int]:
        done = []
        while Run.objects.queued().exists() and time.monotonic() < ends_at:
            found = services.claim_next(device=cards[number], owner=str(number))
            devices = found.devices if isinstance(found, services.DeviceSet) else [cards[number]]
            run = services.set_claim(wanted=found, owner=str(number)) if len(devices) > 1 else found
            if run is None:
                time.sleep(0.05)  # others hold what it needs
                continue
            held = {device.pk for device in devices}
            with guard:
                assert not busy & held
                busy.update(held)
            done.append(run.pk)
            with guard:
                busy.difference_update(held)
            assert services.run_finish(run_id=run.pk, token=run.token, result=result)
        return done

    assert sorted(pk for each in at_once(work) for pk in each) == sorted(run.pk for run in runs)
    assert set(Run.objects.values_list("state", "attempt")) == {(State.FINISHED, 1)}
    assert not Device.objects.exclude(held_for=None).exists()
