"""The sender as a real process: it delivers, and a kill loses nothing."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.utils import timezone

from analysis.models import Delivery, DeliveryState, NewsKind, Run
from analysis.news import sender as sender_module
from analysis.news.sender import NewsSender
from analysis.news.subscriptions import subscription_test
from tests.factories import make_device, make_measured_run
from tests.news.receiver import is_signed
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db


def test_a_receiver_that_hangs_delays_no_other(subscribe, receiver, settings, alice) -> None:
    settings.NEWS_TIMEOUT_SECONDS = 1.0
    slow, _ = subscribe()
    quick, _ = subscribe(name="other", kinds=[NewsKind.FAILED], url=f"http://127.0.0.1:{receiver.port}/other")
    device = make_device()
    for _ in range(3):
        make_measured_run(device, requested_by=alice)
    subscription_test(subscription=quick)
    sender, done = NewsSender(), []

    class Threads:
        """Runs each attempt at once, and shows which were handed out together."""

        def submit(self, function, parcel):
            done.append(parcel.delivery.subscription_id)
            return Future()  # under way for ever

    sender.look(Threads())
    sender.look(Threads())
    assert sorted(done) == sorted([slow.pk, quick.pk])  # of the slow one a single delivery is under way


def test_a_fault_of_the_sender_is_an_attempt_in_the_log_and_not_its_end(subscribe, receiver, monkeypatch) -> None:
    subscription_test(subscription=subscribe()[0])
    monkeypatch.setattr(sender_module, "attempt", lambda parcel: 1 / 0)
    sender = NewsSender()
    with ThreadPoolExecutor(1) as threads:
        sender.look(threads)
    sender.look(threads)
    logged = Delivery.objects.get().attempts.get()
    assert (logged.is_delivered, logged.reason) == (False, "a fault of the sender: ZeroDivisionError")


def test_a_result_that_cannot_be_read_is_news_all_the_same_and_stops_no_other(subscribe, send, receiver, alice) -> None:
    subscribe()
    broken = make_measured_run(make_device(), requested_by=alice)
    Run.objects.filter(pk=broken.pk).update(result={"boundary": 7, "estimate": {"gpu": 1}})
    whole = make_measured_run(broken.device, requested_by=alice)
    send()
    send()
    bodies = [json.loads(each.body) for each in receiver.received]
    assert [body["run"] for body in bodies] == [broken.pk, whole.pk]
    assert bodies[0]["verdict"].endswith(": finished.")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_delivery_of_a_killed_sender_is_sent_by_the_next_one(subscribe, receiver, tmp_path) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the sender is given the name of the test database's file")
    subscription, secret = subscribe()
    hangs = True

    def behave(handler) -> None:
        if hangs:
            time.sleep(30)
        else:
            handler.send_response(204)
            handler.end_headers()

    receiver.behave = behave
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
        "MEMORYMARK_DATA_DIR": str(tmp_path),
        "SECRET_KEY": django_settings.SECRET_KEY,
        "MEMORYMARK_NEWS_TIMEOUT_SECONDS": "60",
    }
    command = [sys.executable, "manage.py", "send_news"]
    subscription_test(subscription=subscription)
    first = subprocess.Popen(command, env=environment, cwd=django_settings.BASE_DIR)
    try:
        wait_until(lambda: len(receiver.received) == 1)
    finally:
        first.kill()
        first.wait()
    hangs = False
    delivery = Delivery.objects.get()
    assert delivery.state == DeliveryState.WAITING
    Delivery.objects.update(due_at=timezone.now())  # the lease of the killed one has run out
    second = subprocess.Popen(command, env=environment, cwd=django_settings.BASE_DIR)
    try:
        wait_until(lambda: Delivery.objects.get().state == DeliveryState.DELIVERED)
        second.terminate()
        assert second.wait(timeout=30) == 0
    finally:
        second.kill()
        second.wait()
    assert [each.headers["X-MemoryMark-Delivery"] for each in receiver.received] == [str(delivery.delivery_id)] * 2
    assert all(is_signed(each, secret) for each in receiver.received)
