"""A receiver whose host is allowed, subscriptions to it, and one turn of the sender."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now

from analysis.models import AllowedHost, Delivery, DeliveryState, NewsKind, Subscription
from analysis.news.deliver import attempt, store_outcome, take_due
from analysis.news.fan_out import dispatch_waiting
from analysis.news.subscriptions import Wish, subscription_create
from tests.news.receiver import Receiver, receiving


@pytest.fixture
def receiver(db) -> Iterator[Receiver]:
    with receiving() as started:
        AllowedHost.objects.create(host=f"127.0.0.1:{started.port}")
        yield started


@pytest.fixture
def subscribe(alice: User, receiver: Receiver) -> Callable[..., tuple[Subscription, str]]:
    def create(owner: User = alice, **wish: Any) -> tuple[Subscription, str]:
        chosen = {"name": "mine", "channel": "webhook", "kinds": [NewsKind.FINISHED], "url": receiver.url, **wish}
        return subscription_create(owner=owner, wish=Wish(**chosen))

    return create


@pytest.fixture
def send(settings: Any) -> Callable[[], None]:
    """Dispatches what waits and attempts what is due, once, also what would be due only later."""
    settings.NEWS_TIMEOUT_SECONDS = 60.0  # a busy machine is no failing receiver

    def turn() -> None:
        while dispatch_waiting():
            pass
        Delivery.objects.filter(state=DeliveryState.WAITING).update(due_at=Now())
        for parcel in take_due(20, busy=()):
            store_outcome(parcel, attempt(parcel))

    return turn
