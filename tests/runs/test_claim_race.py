"""Several ask at once: each run goes to one worker, and one that is restored meanwhile is not thrown away."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from django.db import connections, transaction
from django.utils import timezone

from analysis.models import Device, Measurement, Run, State
from analysis.runs import services
from analysis.runs.keeping.purge import reported_devices_purge
from analysis.runs.queue.placement import Placement
from analysis.runs.reported.reports import report_device
from tests.factories import (
    make_card,
    make_claimed_run,
    make_device,
    make_probe,
    make_result,
    make_run,
    make_run_of_several,
    make_spec,
)
from tests.factories.reports import DEVICE, SendingClient, make_reported_run, make_run_key

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


def a_finished_run(**columns: Any) -> Run:
    run = make_claimed_run()
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(), sequence=1)
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    Run.objects.filter(pk=run.pk).update(**columns)
    return run


def while_uncommitted(change: Callable[[], Any], retention: Callable[[], Any]) -> None:
    """`retention` begins after `change`, whose transaction ends a while later, or once retention is through."""
    changed, through = threading.Event(), threading.Event()

    def work() -> None:
        with transaction.atomic():
            change()
            changed.set()
            through.wait(1)
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    changed.wait(10)
    retention()
    through.set()
    thread.join()


def test_a_run_that_is_just_being_restored_is_not_purged(root):
    run = a_finished_run(deleted_at=timezone.now() - timedelta(days=40))
    while_uncommitted(
        lambda: services.runs_restore(run_ids=[run.pk], by=root),
        lambda: services.runs_purge(before=timezone.now(), limit=10),
    )
    assert Run.objects.filter(pk=run.pk).exists()
    assert Measurement.objects.filter(run=run).exists()


def test_a_run_that_is_just_being_pinned_is_not_deleted_for_its_age(root):
    run = a_finished_run(finished_at=timezone.now() - timedelta(days=400))
    while_uncommitted(
        lambda: services.runs_set_baseline(run_ids=[run.pk], by=root, is_baseline=True),
        lambda: services.runs_expire(before=timezone.now(), limit=10),
    )
    assert Run.objects.filter(pk=run.pk, is_baseline=True).exists()


def test_a_device_that_is_just_being_reported_stays_with_its_host(alice):
    device = (old := make_reported_run(alice)).device
    old.delete()
    SendingClient(alice).begin(make_run_key())
    run = Run.objects.get()
    while_uncommitted(lambda: report_device(run, DEVICE), lambda: reported_devices_purge(limit=10))
    assert Run.objects.get().device == device
    assert reported_devices_purge(limit=10) == 0
