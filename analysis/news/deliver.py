"""Deliveries that are due are taken, and their outcome is stored.

Taking one moves `due_at` past the longest attempt: a sender that is killed meanwhile has lost nothing, the delivery is
due again. So a receiver may see one twice, with the same delivery id.
"""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from analysis.database import database_now
from analysis.models import (
    AllowedHost,
    Channel,
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    NewsEvent,
    NewsKind,
    Subscription,
)
from analysis.models.news import REASON_LENGTH
from analysis.models.text import storable_text
from analysis.news.addresses import parse_target
from analysis.news.messages import encoded
from analysis.news.post import DeliveryOutcome, post, send_mail
from analysis.news.signing import HEADER, signature_header, signing_secrets
from engine import __version__
from engine.errors import SpecError

_LOOKUP_SECONDS = 30.0
"""Seconds after which resolvers give up a name lookup, which has no time limit of ours."""
_AWAY_SECONDS = 120.0
LONGEST_SECONDS = 3600.0
DISABLED_AFTER = timedelta(days=3)
"""How long every attempt must have failed before a subscription is disabled."""
GONE = 410
"""The status by which a receiver says that it wants no more."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """All that one attempt needs, subscription and owner too: the thread that sends it reads no row."""

    delivery: Delivery
    secrets: Sequence[str]
    is_host_allowed: bool


def take_due(limit: int, busy: Collection[int]) -> list[Parcel]:
    """Take due deliveries, the longest waiting first, one for each subscription without an attempt (`busy`)."""
    due = Delivery.objects.waiting().filter(due_at__lte=Now())
    due = due.exclude(subscription__in=busy).order_by("due_at")
    oldest = list(due.values_list("pk", "subscription")[: 20 * limit])
    one_each = {subscription: delivery for delivery, subscription in reversed(oldest)}
    return [parcel for pk in list(one_each.values())[:limit] if (parcel := _take(pk)) is not None]


def is_sender_away() -> bool:
    """Whether news wait for so long that no sender seems to work."""
    long_ago = Now() - timedelta(seconds=max(_AWAY_SECONDS, 4 * settings.NEWS_TIMEOUT_SECONDS + _LOOKUP_SECONDS))
    due = Delivery.objects.waiting().filter(due_at__lt=long_ago)
    return due.exists() or NewsEvent.objects.filter(dispatched_at=None, created_at__lt=long_ago).exists()


def attempt(parcel: Parcel) -> DeliveryOutcome:
    """Send a parcel once; runs in a thread, without the database."""
    to, number, content = parcel.delivery.subscription, str(parcel.delivery.delivery_id), parcel.delivery.body
    if to.channel == Channel.EMAIL:
        return send_mail(to.owner.email, number, content)
    body = encoded(to.channel, number, content)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"MemoryMark/{__version__}",
        "X-MemoryMark-Event": str(content["event"]),
        "X-MemoryMark-Delivery": number,
    }
    if parcel.secrets:
        headers[HEADER] = signature_header(parcel.secrets, body, int(time.time()))
    limit = settings.NEWS_TIMEOUT_SECONDS
    return post(to.url, body, headers, is_allowed=parcel.is_host_allowed, seconds=limit)


def store_outcome(parcel: Parcel, outcome: DeliveryOutcome) -> None:
    with transaction.atomic():
        delivery = Delivery.objects.select_for_update().filter(pk=parcel.delivery.pk).first()
        if delivery is None or delivery.state != DeliveryState.WAITING:
            return  # its subscription was deleted or disabled, or a slower sender's delivery arrived meanwhile
        DeliveryAttempt.objects.create(
            delivery=delivery,
            number=parcel.delivery.attempts_made,
            is_delivered=outcome.is_delivered,
            status=outcome.status,
            seconds=outcome.seconds,
            reason=storable_text(outcome.reason, REASON_LENGTH),
        )
        subscriptions = Subscription.objects.filter(pk=delivery.subscription_id)
        if outcome.is_delivered:
            _end(delivery, DeliveryState.DELIVERED)
            subscriptions.update(failing_since=None)
            return
        subscriptions.filter(failing_since=None).update(failing_since=Now())
        _try_again(delivery)
        subscription = subscriptions.get()
        if outcome.status == GONE:
            disable(subscription, "the receiver answered 410 Gone")
        elif subscription.failing_since and database_now() - subscription.failing_since >= DISABLED_AFTER:
            disable(subscription, f"every attempt failed for {DISABLED_AFTER.days} days; the last: {outcome.reason}")


def _take(pk: int) -> Parcel | None:
    lease = timedelta(seconds=2 * settings.NEWS_TIMEOUT_SECONDS + _LOOKUP_SECONDS)
    due = Delivery.objects.filter(pk=pk, state=DeliveryState.WAITING, due_at__lte=Now())
    if not due.update(due_at=Now() + lease, attempts_made=F("attempts_made") + 1):
        return None
    delivery = Delivery.objects.select_related("subscription__owner").filter(pk=pk).first()
    if delivery is None:
        return None
    to = delivery.subscription
    secrets = signing_secrets(to, database_now()) if to.is_signed else ()
    return Parcel(delivery, secrets, _is_host_allowed(to.url))


def _is_host_allowed(url: str) -> bool:
    try:
        return AllowedHost.objects.filter(host__in=parse_target(url).allowances).exists()
    except SpecError:  # no URL: `post` says so
        return False


def delay_seconds(attempts_made: int, *, base_seconds: float, fraction: float) -> float:
    """Return the delay after this many failed attempts: about 10 s, 20 s, 40 s, ... at most an hour.

    `fraction`, random from 0 to 1, draws it from its upper half, so that failed deliveries do not return together.
    """
    doublings = min(attempts_made - 1, 30)  # beyond it the number overflows, and the cap holds long before
    longest = min(base_seconds * 2.0**doublings, max(LONGEST_SECONDS, base_seconds))
    return longest * (0.5 + 0.5 * fraction)


def _try_again(delivery: Delivery) -> None:
    fraction = random.random()  # noqa: S311  (spreads retries, protects nothing)
    delay = delay_seconds(delivery.attempts_made, base_seconds=settings.NEWS_RETRY_SECONDS, fraction=fraction)
    due_at = database_now() + timedelta(seconds=delay)
    if due_at > delivery.created_at + timedelta(seconds=settings.NEWS_GIVE_UP_SECONDS):
        _end(delivery, DeliveryState.GIVEN_UP)
    else:
        Delivery.objects.filter(pk=delivery.pk).update(due_at=due_at)


def _end(delivery: Delivery, state: DeliveryState) -> None:
    Delivery.objects.filter(pk=delivery.pk).update(state=state, ended_at=Now())


def disable(subscription: Subscription, reason: str) -> None:
    """Disable a subscription, and give up its deliveries; its page and the owner's other subscriptions say so."""
    reason = storable_text(reason, REASON_LENGTH)
    details = {
        "owner": subscription.owner_id,
        "verdict": f"Your notifications “{subscription.name}” are off: {reason}.",
    }
    key = f"disabled:{subscription.pk}:{database_now().timestamp():.0f}"
    NewsEvent.objects.create(kind=NewsKind.DISABLED, key=key, details=details)
    Subscription.objects.filter(pk=subscription.pk).update(disabled_at=Now(), disabled_because=reason)
    waiting = Delivery.objects.filter(subscription=subscription, state=DeliveryState.WAITING)
    waiting.update(state=DeliveryState.GIVEN_UP, ended_at=Now())
