"""Calls of one run that come at the same moment: each document and each event is stored once, and none is lost."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from typing import Any, TypeVar

import pytest
from django.contrib.auth.models import User
from django.db import connections

from analysis.models import Attempt, Device, Measurement, Report, Run, RunLog
from tests.factories.reports import SendingClient, make_document, make_events, make_probes, make_run_key

pytestmark = pytest.mark.django_db(transaction=True)
SENDERS = 4
T = TypeVar("T")


def at_once(*works: Callable[[], T]) -> list[T]:
    """Run these in threads that start together, each with its own connection to the database."""
    barrier = threading.Barrier(len(works))

    def started_together(work: Callable[[], T]) -> T:
        barrier.wait()
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(started_together, works))


def sent(sender: SendingClient, document: bytes) -> Any:
    """Send a document as senders do: once more where several others are being read."""
    while (answer := sender.send_result(document)).status_code == 503:
        sleep(0.05)
    return answer


def senders(owner: User) -> list[SendingClient]:
    return [SendingClient(owner) for _ in range(SENDERS)]


def test_one_document_from_many_at_once_is_one_run(alice):
    document = make_document()
    answers = at_once(*(lambda each=each: sent(each, document) for each in senders(alice)))
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: SENDERS - 1}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert (Run.objects.count(), Report.objects.count(), Attempt.objects.count()) == (1, 1, 1)
    assert Measurement.objects.count() == 4


def test_two_documents_of_one_run_at_once_store_one_and_refuse_the_other(alice):
    key = make_run_key()
    documents = [make_document(key, host=f"node{number}") for number in range(SENDERS)]
    works = [lambda e=e, d=d: sent(e, d) for e, d in zip(senders(alice), documents, strict=True)]
    answers = at_once(*works)
    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: SENDERS - 1}
    assert Run.objects.count() == 1


def test_the_same_events_from_many_at_once_are_stored_once(alice):
    everyone, key, events = senders(alice), make_run_key(), make_events(make_probes())
    at_once(*(lambda each=each: each.begin(key) for each in everyone))
    assert Run.objects.count() == 1
    answers = at_once(*(lambda each=each: each.send_events(key, 0, *events) for each in everyone))
    assert [(answer.status_code, answer.json()["next"]) for answer in answers] == [(200, len(events))] * SENDERS
    run = Run.objects.get()
    assert list(Measurement.objects.of(run).values_list("sequence", flat=True)) == [1, 2, 3, 4]
    assert RunLog.objects.of(run).count() == 7
    assert Device.all_devices.count() == 1


def test_events_and_the_result_at_once_end_in_the_result(alice):
    first, second, third = senders(alice)[:3]
    first.begin(key := make_run_key())
    document, events = make_document(key), make_events(make_probes())
    answers = at_once(
        lambda: first.send_events(key, 0, *events),
        lambda: second.send_result(document),
        lambda: third.send_events(key, 0, *events[:5]),
    )
    assert [answer.status_code for answer in answers] == [200, 201, 200]
    run = Run.objects.get()
    assert (run.state, run.largest_batch_size) == ("finished", 8)
    assert list(Measurement.objects.of(run).values_list("batch_size", flat=True)) == [4, 8, 9, 8]
