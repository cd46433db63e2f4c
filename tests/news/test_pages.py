"""The page "Notifications", and what docs/notifications.md says of the signature."""

import re
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from analysis.models import AuditEntry, Delivery, SavedView, Subscription
from analysis.news.subscriptions import SUBSCRIPTIONS_PER_PERSON, subscription_test
from tests.factories import make_device, make_measured_run
from tests.news.receiver import answer

pytestmark = pytest.mark.django_db

LIST = "/account/notifications/"
FORM = {"name": "ci", "channel": "webhook", "kinds": ["run.finished"], "url": "https://ci.example/services/SECRET"}
SECRET = re.compile(r"mm_whsec_[\w-]{43}")


def test_the_secret_is_on_the_page_that_creates_it_and_on_no_other(alice_client: Client) -> None:
    created = alice_client.post(f"{LIST}new/", FORM)
    assert len(SECRET.findall(created.content.decode())) == 1
    number = Subscription.objects.get().pk
    for address in (LIST, f"{LIST}{number}/"):
        assert not SECRET.search(alice_client.get(address).content.decode())


def test_the_audit_log_has_the_host_but_neither_path_nor_secret(alice_client: Client) -> None:
    alice_client.post(f"{LIST}new/", FORM)
    entry = AuditEntry.objects.get(action="subscription.create")
    assert entry.after["host"] == "ci.example"
    assert "SECRET" not in str(entry.after)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"url": "http://ci.example/"}, "must begin with https://"),
        ({"url": "https://169.254.169.254/"}, "the address is not public"),
        ({"kinds": []}, "This field is required"),
        ({"name": ""}, "This field is required"),
        ({"channel": "email", "url": ""}, "Select a valid choice"),
        ({"view": "999"}, "Select a valid choice"),
    ],
)
def test_a_wrong_field_says_what_is_allowed_and_nothing_is_stored(
    alice_client: Client, change: dict, text: str
) -> None:
    response = alice_client.post(f"{LIST}new/", {**FORM, **change})
    assert response.status_code == 422
    assert text in response.content.decode()
    assert not Subscription.objects.exists()


def test_a_person_has_a_bounded_number(alice_client: Client, alice: User) -> None:
    Subscription.objects.bulk_create(
        Subscription(owner=alice, name=str(number), channel="slack") for number in range(SUBSCRIPTIONS_PER_PERSON)
    )
    assert alice_client.post(f"{LIST}new/", FORM).status_code == 422


def test_the_log_shows_each_attempt_with_status_and_reason(subscribe, send, receiver, alice, alice_client) -> None:
    subscription, _ = subscribe()
    run = make_measured_run(make_device(), requested_by=alice)
    receiver.behave = answer(500)
    send()
    receiver.behave = answer(200)
    send()
    page = alice_client.get(f"{LIST}{subscription.pk}/").content.decode()
    assert f'<a href="/runs/{run.pk}/">run {run.pk}</a>' in page
    assert re.search(r"500, [\d.]+ s, the receiver refused it", page)
    assert re.search(r"200, [\d.]+ s", page)


def test_saving_turns_a_disabled_one_on_again(alice_client: Client) -> None:
    alice_client.post(f"{LIST}new/", FORM)
    Subscription.objects.update(disabled_at="2026-01-01T00:00Z", disabled_because="every attempt failed")
    address = f"{LIST}{Subscription.objects.get().pk}/"
    assert "every attempt failed" in alice_client.get(address).content.decode()
    assert alice_client.post(address, FORM).status_code == 302
    assert Subscription.objects.get().disabled_at is None


def test_the_page_says_when_nothing_sends_the_news(subscribe, alice_client: Client) -> None:
    subscription_test(subscription=subscribe()[0])
    assert "does not run" not in alice_client.get(LIST).content.decode()
    Delivery.objects.update(due_at=timezone.now() - timedelta(minutes=5))
    assert "does not run" in alice_client.get(LIST).content.decode()


def test_another_persons_private_view_is_not_offered(alice_client: Client, root: User) -> None:
    SavedView.objects.create(owner=root, name="private view", query="")
    SavedView.objects.create(owner=root, name="shared view", query="", is_shared=True)
    page = alice_client.get(LIST).content.decode()
    assert "shared view" in page
    assert "private view" not in page


def test_the_function_of_the_documentation_verifies_real_requests_and_refuses_others(
    subscribe, send, receiver, alice
) -> None:
    text = (Path(django_settings.BASE_DIR) / "docs" / "notifications.md").read_text()
    (source,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    names: dict = {}
    exec(source, names)
    verify = names["is_from_memorymark"]
    _, secret = subscribe()
    make_measured_run(make_device(), requested_by=alice)
    send()
    (received,) = receiver.received
    header = received.headers["X-MemoryMark-Signature"]
    assert verify(secret, header, received.body)
    assert not verify(secret, header, received.body + b" ")
    assert not verify("mm_whsec_other", header, received.body)
    assert not verify(secret, f"t={int(time.time()) + 1},{header.partition(',')[2]}", received.body)
    assert not verify(secret, header, received.body, tolerance_seconds=-1)
    assert not verify(secret, "garbage", received.body)
