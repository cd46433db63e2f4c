"""From the end of a run to a signed request at its receiver or to a mail, through failures."""

import json
import smtplib
import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.db import transaction
from django.utils import timezone

from analysis.models import Delivery, DeliveryState, NewsEvent, NewsKind, Subscription
from analysis.news.deliver import DISABLED_AFTER, attempt, take_due
from analysis.news.fan_out import dispatch_waiting
from analysis.news.messages import mail_text
from analysis.news.subscriptions import Wish, subscription_create, subscription_rotate, subscription_test
from analysis.runs import services
from engine.errors import SpecError
from tests.factories import make_claimed_run, make_device, make_measured_run, make_result, make_run
from tests.factories.speeds import make_bound_result
from tests.news.receiver import answer, is_signed

pytestmark = pytest.mark.django_db


def test_the_owner_of_a_run_receives_its_end_signed_with_figures_and_link(subscribe, send, receiver, alice, settings):
    settings.PUBLIC_URL = "https://lab.example"
    _, secret = subscribe()
    run = make_measured_run(make_device(), requested_by=alice)
    send()
    (received,) = receiver.received
    body = json.loads(received.body)
    assert is_signed(received, secret)
    assert body["event"] == received.headers["X-MemoryMark-Event"] == "run.finished"
    assert (body["run"], body["link"]) == (run.pk, f"https://lab.example/runs/{run.pk}/")
    assert body["figures"]["largest_batch_size"] == {"value": 8, "kind": "measured", "is_trusted": True}
    assert body["figures"]["speedup"] == {
        **{"value": 2.0, "low": None, "high": None, "is_lower_bound": False},
        **{"kind": "measured", "is_trusted": True},
    }
    assert "8 samples" in body["verdict"]
    assert Delivery.objects.get().state == DeliveryState.DELIVERED


def test_a_speed_up_of_which_a_bound_is_known_is_a_bound_with_its_interval(subscribe, send, receiver, alice):
    subscribe()
    run = make_claimed_run(current_batch_size=4, requested_by=alice)
    result = make_bound_result(spec=run.run_spec)
    services.run_finish(run_id=run.pk, token=run.token, result=result.to_dict())
    send()
    body = json.loads(receiver.received[0].body)
    assert "at least 2x as fast as your 4. Measured 2.0 to 3.8x as fast." in body["verdict"]
    kind = {"is_lower_bound": True, "is_trusted": True}
    assert body["figures"]["speedup"] == {"value": 2.0, "low": 2.0, "high": 3.8, "kind": "measured", **kind}
    saving, known = body["figures"]["saving_per_year_usd"], result.savings
    ends = {"low": known.per_year_usd_low, "high": known.per_year_usd_high}
    assert saving == {"value": known.per_year_usd_low, **ends, "kind": "derived", **kind}
    assert "speedup: at least 2.0 (2 to 3.8), measured" in mail_text(body)


def test_a_body_holds_no_name_and_no_note(subscribe, send, receiver, alice):
    subscribe()
    run = make_measured_run(make_device(), requested_by=alice)
    services.run_annotate(run_id=run.pk, by=alice, name="secret name", note="secret note", tags=["secret-tag"])
    send()
    assert b"secret" not in receiver.received[0].body
    assert b"alice" not in receiver.received[0].body


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        (NewsKind.FAILED, lambda run: services.run_fail(run_id=run.pk, token=run.token, code="bad_spec", message="/x")),
        (NewsKind.CANCELLED, lambda run: services.run_mark_cancelled(run_id=run.pk, token=run.token)),
    ],
)
def test_every_end_of_a_run_is_news(subscribe, send, receiver, alice, kind, end):
    subscribe(kinds=[kind])
    end(make_claimed_run(make_device(), requested_by=alice))
    send()
    assert json.loads(receiver.received[0].body)["event"] == kind
    assert b"/x" not in receiver.received[0].body  # the text of an error may hold paths of the host


def test_a_waiting_run_that_is_cancelled_is_news(subscribe, send, receiver, alice):
    subscribe(kinds=[NewsKind.CANCELLED])
    services.runs_cancel(run_ids=[make_run(make_device(), requested_by=alice).pk])
    send()
    assert len(receiver.received) == 1


def test_an_end_that_is_rolled_back_is_no_news(alice):
    run = make_claimed_run(make_device(), requested_by=alice)
    with transaction.atomic():
        services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
        transaction.set_rollback(True)
    assert not NewsEvent.objects.exists()


def test_a_failed_delivery_is_repeated_with_the_same_id_and_body(subscribe, send, receiver, alice):
    _, secret = subscribe()
    make_measured_run(make_device(), requested_by=alice)
    receiver.behave = answer(500)
    send()
    receiver.behave = answer(200)
    send()
    first, second = receiver.received
    assert first.headers["X-MemoryMark-Delivery"] == second.headers["X-MemoryMark-Delivery"]
    assert first.body == second.body
    assert is_signed(second, secret)
    log = Delivery.objects.get().attempts.values_list("number", "is_delivered", "status")
    assert list(log) == [(1, False, 500), (2, True, 200)]


def test_a_delivery_whose_sender_was_killed_is_due_again(subscribe, send, receiver, alice):
    subscribe()
    make_measured_run(make_device(), requested_by=alice)
    dispatch_waiting()
    (parcel,) = take_due(1, busy=())
    attempt(parcel)  # and killed before the outcome is stored
    assert take_due(1, busy=()) == []  # as long as it may be under way
    send()
    assert [each.headers["X-MemoryMark-Delivery"] for each in receiver.received] == [
        str(parcel.delivery.delivery_id)
    ] * 2
    assert Delivery.objects.get().state == DeliveryState.DELIVERED


def test_of_two_senders_one_takes_a_delivery(subscribe, receiver, alice):
    subscribe()
    make_measured_run(make_device(), requested_by=alice)
    dispatch_waiting()
    assert [len(take_due(5, busy=())) for _ in range(2)] == [1, 0]


def test_a_delivery_is_given_up_after_the_stated_time_and_the_log_says_why(subscribe, send, receiver, alice):
    subscribe()
    make_measured_run(make_device(), requested_by=alice)
    receiver.behave = answer(503)
    send()
    Delivery.objects.update(created_at=timezone.now() - timedelta(days=2))
    send()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts_made) == (DeliveryState.GIVEN_UP, 2)
    assert delivery.attempts.last().reason == "the receiver refused it"


def test_a_redirect_is_a_failure_and_is_not_followed(subscribe, send, receiver, alice):
    subscribe()
    make_measured_run(make_device(), requested_by=alice)
    receiver.behave = answer(302, Location=f"http://127.0.0.1:{receiver.port}/elsewhere")
    send()
    assert [each.path for each in receiver.received] == ["/hook"]
    assert "redirect" in Delivery.objects.get().attempts.get().reason


def test_a_receiver_that_trickles_ends_at_the_limit(subscribe, send, receiver, alice, settings):
    settings.NEWS_TIMEOUT_SECONDS = 1.0
    subscribe()
    make_measured_run(make_device(), requested_by=alice)
    ended = []

    def trickle(handler):
        try:
            for byte in b"HTTP/1.1 200 " + b"x" * 500:
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
                time.sleep(0.02)
        except OSError:
            ended.append(True)

    receiver.behave = trickle
    send()
    assert "no response within 1 s" in Delivery.objects.get().attempts.get().reason


@pytest.mark.parametrize("answered", [b"garbage\r\n\r\n", b"", b"HTTP/1.1 999999 no\r\n\r\n"])
def test_an_answer_that_is_no_http_is_a_failure_with_its_reason(subscribe, send, receiver, alice, answered):
    subscribe()
    make_measured_run(make_device(), requested_by=alice)
    receiver.behave = lambda handler: handler.wfile.write(answered)
    send()
    failed = Delivery.objects.get().attempts.get()
    assert not failed.is_delivered
    assert failed.reason


def test_after_a_rotation_both_secrets_sign_for_a_day(subscribe, send, receiver, alice):
    subscription, former = subscribe()
    current = subscription_rotate(subscription=subscription)
    make_measured_run(make_device(), requested_by=alice)
    send()
    assert current != former
    assert is_signed(receiver.received[0], current)
    assert is_signed(receiver.received[0], former)
    Subscription.objects.update(rotated_at=timezone.now() - timedelta(days=1))
    subscription_test(subscription=subscription)
    send()
    assert is_signed(receiver.received[1], current)
    assert not is_signed(receiver.received[1], former)


def test_a_former_secret_key_signs_while_it_is_a_fallback(subscribe, send, receiver, settings):
    subscription, secret = subscribe()
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "a new key"
    subscription_test(subscription=subscription)
    send()
    assert is_signed(receiver.received[0], secret)


def test_a_subscription_that_fails_for_days_is_disabled_and_its_owner_hears_of_it(subscribe, send, receiver, alice):
    subscription, _ = subscribe()
    subscribe(name="other", kinds=[NewsKind.FAILED], url=f"http://127.0.0.1:{receiver.port}/other")
    receiver.behave = answer(500)
    make_measured_run(make_device(), requested_by=alice)
    send()
    Subscription.objects.filter(pk=subscription.pk).update(failing_since=timezone.now() - DISABLED_AFTER)
    send()
    receiver.behave = answer(200)
    send()
    subscription.refresh_from_db()
    assert subscription.disabled_at is not None
    assert Delivery.objects.get(subscription=subscription).state == DeliveryState.GIVEN_UP
    last = receiver.received[-1]
    assert last.path == "/other"
    assert json.loads(last.body)["event"] == NewsKind.DISABLED


def test_a_slack_body_is_text_with_a_link_and_carries_no_signature(subscribe, send, receiver, alice, settings):
    settings.PUBLIC_URL = "https://lab.example"
    subscribe(channel="slack")
    run = make_measured_run(make_device(), requested_by=alice)
    send()
    received = receiver.received[0]
    assert json.loads(received.body)["text"].endswith(f"<https://lab.example/runs/{run.pk}/|Run {run.pk}>")
    assert "X-MemoryMark-Signature" not in received.headers


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
