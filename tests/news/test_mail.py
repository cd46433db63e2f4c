"""News by mail: opt-in, plain text, off unless it is configured."""

import smtplib
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail

from analysis.models import Delivery, DeliveryState, Subscription
from analysis.news.subscriptions import Wish, subscription_create
from engine.errors import SpecError
from tests.factories import make_device, make_measured_run

pytestmark = pytest.mark.django_db
WISH = Wish("mail", "email", ["run.finished"])


@pytest.fixture
def configured(settings: Any) -> None:
    settings.EMAIL_HOST, settings.PUBLIC_URL = "mail.lab.example", "https://lab.example"


@pytest.fixture
def subscribed(configured: None, alice: User) -> Subscription:
    User.objects.filter(pk=alice.pk).update(email="alice@lab.example")
    alice.refresh_from_db()
    return subscription_create(owner=alice, wish=WISH)[0]


def test_without_a_mail_server_mail_cannot_be_chosen_and_the_page_says_so(alice: User, alice_client) -> None:
    with pytest.raises(SpecError, match="EMAIL_HOST is not set"):
        subscription_create(owner=alice, wish=WISH)
    page = alice_client.get("/account/notifications/").content.decode()
    assert "E-mail is off on this portal" in page
    assert 'value="email"' not in page


def test_without_an_address_mail_cannot_be_chosen(configured: None, alice: User) -> None:
    with pytest.raises(SpecError, match="an address in your account"):
        subscription_create(owner=alice, wish=WISH)


def test_the_end_of_a_run_is_a_mail_in_plain_text_to_the_accounts_address(subscribed, send, alice) -> None:
    run = make_measured_run(make_device(), requested_by=alice)
    send()
    (message,) = mail.outbox
    assert message.to == ["alice@lab.example"]
    assert message.content_subtype == "plain"
    assert f"https://lab.example/runs/{run.pk}/" in message.body
    assert "largest_batch_size: 8, measured" in message.body
    assert message.extra_headers["Message-ID"] == f"<{Delivery.objects.get().delivery_id}@memorymark>"


def test_a_mail_that_fails_is_tried_again(subscribed, send, alice, monkeypatch) -> None:
    make_measured_run(make_device(), requested_by=alice)
    with monkeypatch.context() as patch:
        patch.setattr(mail.EmailMessage, "send", lambda self: (_ for _ in ()).throw(smtplib.SMTPException("busy")))
        send()
    send()
    assert len(mail.outbox) == 1
    log = Delivery.objects.get().attempts.values_list("is_delivered", "reason")
    assert list(log) == [(False, "SMTPException: busy"), (True, "")]


def test_nobody_gets_a_mail_who_did_not_choose_it(configured: None, send, alice) -> None:
    make_measured_run(make_device(), requested_by=alice)
    send()
    assert mail.outbox == []
    assert not Delivery.objects.filter(state=DeliveryState.DELIVERED).exists()
