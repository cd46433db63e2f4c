"""A run that is restored or pinned while retention looks at it stays. SQLite has one writer; PostgreSQL has locks."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, transaction
from django.utils import timezone

from analysis.models import Measurement, Run
from analysis.runs import services
from analysis.runs.keeping.purge import reported_devices_purge
from analysis.runs.reported.reports import report_device
from tests.factories import make_claimed_run, make_probe, make_result
from tests.factories.reports import DEVICE, SendingClient, make_reported_run, make_run_key

pytestmark = pytest.mark.django_db(transaction=True)


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
