"""Subscriptions are created, changed, rotated, tested and deleted here, and nowhere else."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from analysis.audit.record import record
from analysis.database import person_lock
from analysis.models import (
    AllowedHost,
    Channel,
    Delivery,
    DeliveryState,
    NewsEvent,
    NewsKind,
    SavedView,
    Scope,
    Subscription,
)
from analysis.models.annotations import NAME_LENGTH
from analysis.models.news import CHOSEN_KINDS
from analysis.news.addresses import NOT_PUBLIC, is_public, parse_target
from analysis.news.fan_out import deliver_to
from analysis.news.post import mail_is_configured
from analysis.news.signing import current_secret
from engine.errors import SpecError

SUBSCRIPTIONS_PER_PERSON = 20


@dataclass(frozen=True, slots=True)
class Wish:
    name: str
    channel: str
    kinds: Sequence[str]
    url: str = ""
    view: SavedView | None = None

    @property
    def scope(self) -> str:
        return Scope.MINE if self.view is None else Scope.VIEW


def subscription_create(*, owner: User, wish: Wish) -> tuple[Subscription, str]:
    """Create a subscription. Returns it and the secret of a webhook, else an empty text. Raises SpecError."""
    with transaction.atomic():
        person_lock(owner)
        others = Subscription.objects.filter(owner=owner)
        if others.count() >= SUBSCRIPTIONS_PER_PERSON:
            raise SpecError("name", f"a person can have at most {SUBSCRIPTIONS_PER_PERSON}; delete one first")
        _check(wish, owner)
        subscription = Subscription.objects.create(owner=owner, **_columns(wish))
        record("subscription.create", target=subscription, after=_audit_details(subscription))
    return subscription, current_secret(subscription) if subscription.is_signed else ""


def subscription_change(*, subscription: Subscription, wish: Wish) -> None:
    """Change a subscription, and enable it again; a webhook's secret stays. Raises SpecError."""
    if wish.channel != subscription.channel:
        raise SpecError("channel", "cannot be changed: create another subscription")
    with transaction.atomic():
        person_lock(subscription.owner)
        _check(wish, subscription.owner, subscription)
        before = _audit_details(subscription)
        enabled = {"disabled_at": None, "disabled_because": "", "failing_since": None}
        Subscription.objects.filter(pk=subscription.pk).update(**_columns(wish), **enabled)
        subscription.refresh_from_db()
        record("subscription.change", target=subscription, before=before, after=_audit_details(subscription))


def subscription_rotate(*, subscription: Subscription) -> str:
    """Return a new secret. The former one signs too for a day, in which to change the receiver. Raises SpecError."""
    if not subscription.is_signed:
        raise SpecError("channel", "only a webhook has a secret")
    with transaction.atomic():
        rows = Subscription.objects.filter(pk=subscription.pk)
        rows.update(generation=F("generation") + 1, rotated_at=Now())
        subscription.refresh_from_db()
        record("subscription.rotate", target=subscription, after={"generation": subscription.generation})
    return current_secret(subscription)


def subscription_delete(*, subscription: Subscription) -> None:
    with transaction.atomic():
        record("subscription.delete", target=subscription, before=_audit_details(subscription))
        subscription.delete()


def subscription_test(*, subscription: Subscription) -> None:
    """Send a test through the same way as all news, so that its delivery log says what was wrong."""
    if subscription.disabled_at is not None:
        raise SpecError("subscription", "is disabled: save it to enable it again, then send a test")
    if Delivery.objects.filter(
        subscription=subscription, event__kind=NewsKind.TEST, state=DeliveryState.WAITING
    ).exists():
        raise SpecError("subscription", "has a test on its way already: see its log")
    details = {"verdict": f"A test of the notifications “{subscription.name}”: they arrive."}
    with transaction.atomic():
        key = f"test:{uuid.uuid4().hex}"
        event = NewsEvent.objects.create(kind=NewsKind.TEST, key=key, details=details, dispatched_at=Now())
        deliver_to(event, None, [subscription])


def _check(wish: Wish, owner: User, changed: Subscription | None = None) -> None:
    name = wish.name.strip()
    if not name or len(name) > NAME_LENGTH or not name.isprintable():
        raise SpecError("name", f"must be 1 to {NAME_LENGTH} printable characters")
    others = Subscription.objects.filter(owner=owner).exclude(pk=changed.pk if changed else 0)
    if others.filter(name=name).exists():
        raise SpecError("name", "another one of yours has this name")
    if wish.view is not None and wish.view.owner_id != owner.pk and not wish.view.is_shared:
        raise SpecError("view", "must be a saved view of yours, or a shared one")
    _check_mail(wish, owner) if wish.channel == Channel.EMAIL else _check_url(wish.url)


def _check_mail(wish: Wish, owner: User) -> None:
    if wish.url:
        raise SpecError("url", "must be empty: mail goes to the address of your account")
    if not mail_is_configured():
        raise SpecError("channel", "email is off on this portal: EMAIL_HOST is not set")
    if not owner.email:
        raise SpecError("channel", "email needs an address in your account: a GPU manager can enter it")


def _check_url(url: str) -> None:
    """Refuse early what no attempt could deliver. The addresses behind a name are checked with each attempt."""
    target = parse_target(url)
    if AllowedHost.objects.filter(host__in=target.allowances).exists():
        return
    if not target.is_tls:
        raise SpecError("url", "must begin with https://; a GPU manager can allow http for a host")
    with suppress(ValueError):  # a name
        if not is_public(ip_address(target.host)):
            raise SpecError("url", f"{NOT_PUBLIC}; a GPU manager can allow {target.host_header}")


def _columns(wish: Wish) -> dict[str, object]:
    kinds = [kind.value for kind in CHOSEN_KINDS if kind in wish.kinds]
    columns = {"name": wish.name.strip(), "channel": wish.channel, "kinds": kinds, "url": wish.url}
    return {**columns, "scope": wish.scope, "view": wish.view}


def _audit_details(subscription: Subscription) -> dict[str, object]:
    """Return what the audit log stores. Of the URL only the host: Slack's holds a secret in its path."""
    host = parse_target(subscription.url).host if subscription.url else ""
    details = {"name": subscription.name, "channel": subscription.channel, "host": host}
    return {**details, "kinds": subscription.kinds, "view": subscription.view_id}
