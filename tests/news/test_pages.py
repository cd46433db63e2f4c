"""The page "Notifications", what the documentation says of the signature, and names of others in news."""

import json
import re
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone

from analysis.models import AuditEntry, Delivery, NewsEvent, NewsKind, Run, SavedView, Subscription
from analysis.news.messages import body_of, encoded, mail_line, mail_text, mrkdwn, slack_text
from analysis.news.post import send_mail
from analysis.news.subscriptions import SUBSCRIPTIONS_PER_PERSON, Wish, subscription_create, subscription_test
from engine.errors import SpecError
from tests.factories import make_device, make_measured_run
from tests.factories.reports import SendingClient, make_function_document, make_run_key
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


EVIL = "x\r\nBcc: all@lab.example\r\n\r\n*Pay now* at http://evil.example/ [here](www.evil.example) <!channel> "
EVIL += "`a` ~b~ _c_"


@pytest.fixture
def body(alice: User) -> dict:
    run = make_measured_run(requested_by=alice)
    Run.objects.filter(pk=run.pk).update(model=EVIL[:40], result={**run.result, "spec": {**run.spec, "model": EVIL}})
    run.refresh_from_db()
    event = NewsEvent.objects.filter(kind=NewsKind.FINISHED).first() or NewsEvent(kind=NewsKind.FINISHED, run=run)
    event.created_at = run.created_at
    return body_of(event, run)


def test_a_stored_name_is_one_bounded_line_in_every_medium(body: dict) -> None:
    assert "Pay now" in body["verdict"]
    assert body["verdict"].isprintable()
    assert len(body["verdict"]) <= 1_000
    assert mail_text(body).splitlines()[1] == ""


def test_slack_shows_no_markup_and_no_link_of_a_name(body: dict) -> None:
    text, _, own = slack_text(body).rpartition(" <")
    assert own.endswith(f"|Run {body['run']}>")
    for each in ("*", "`", "~", "[here]", "://", "<", ">", " _c_", "www.evil"):
        assert each not in text.replace("&lt;", "").replace("&gt;", "")
    assert json.loads(encoded("slack", "id", body))["text"] == slack_text(body)


def test_mail_links_to_nothing_but_the_run_and_its_head_is_its_own(body: dict, settings) -> None:
    settings.EMAIL_HOST = "mail.lab.example"
    assert send_mail("alice@lab.example", "id", body).is_delivered
    (message,) = mail.outbox
    assert message.recipients() == ["alice@lab.example"]
    assert "\n" not in message.subject
    assert "http://evil" not in message.subject + message.body
    assert "www.evil" not in message.subject + message.body


def test_ordinary_words_stay_as_they_are() -> None:
    for text in (
        "On this A100 BERT base trains with up to 528 samples. Recommended: 96, 1.4x as fast as your 16 (1.3 to 1.5x).",
        "train_gpt.py (own) on cuda:0 of node-7.lab: out of memory.",
    ):
        assert mail_line(text) == mrkdwn(text) == text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "  "),
        ("name", "a\nb"),
        ("name", "a\x1b[31m"),
        ("name", "a\u202eb"),
        ("name", "a" * 101),
        ("directory", "/a\nb"),
        ("batch_in", "a\nb:c"),
        ("function", "a\nb"),
        ("function", "a" * 301),
        ("function", " "),
        ("script", "\x07.py"),
    ],
)
def test_a_name_that_is_no_line_is_refused_by_its_field(alice: User, field: str, value: str) -> None:
    sender = SendingClient(alice)
    spec = json.loads(make_function_document())["result"]["spec"]
    if field in ("name", "directory", "batch_in"):
        spec = {"command": ["python", "train.py", "{batch_size}"], "batch": "template"}
    answer = sender.begin(make_run_key(), kind="command", spec={**spec, field: value})
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{field}"]
    assert not Run.objects.exists()


@pytest.mark.parametrize("host", ["", " ", "a\nb", "a\x1b", "a\u202eb", "a" * 500])
def test_a_host_that_is_no_name_is_refused(alice: User, host: str) -> None:
    assert SendingClient(alice).begin(make_run_key(), host=host).status_code == 400


def test_a_script_whose_file_name_has_control_characters_is_named_in_one_line(alice: User) -> None:
    spec = {"command": ["python", "tr\n\x1bain.py", "{batch_size}"], "batch": "template"}
    assert SendingClient(alice).begin(make_run_key(), kind="command", spec=spec).status_code == 201
    assert Run.objects.get().model == "tr  ain.py"


def test_a_subscription_has_a_name_of_one_line(alice: User) -> None:
    for name in ("", "a\nb", "a\x07"):
        with pytest.raises(SpecError, match="name"):
            subscription_create(owner=alice, wish=Wish(name, "webhook", ["run.finished"], "https://x.example/"))
