"""What a reporter calls their training is a name in others' mail and Slack: no markup, no link, no line of its own."""

import json

import pytest
from django.contrib.auth.models import User
from django.core import mail

from analysis.models import NewsEvent, NewsKind, Run
from analysis.news.messages import body_of, encoded, mail_line, mail_text, mrkdwn, slack_text
from analysis.news.post import send_mail
from analysis.news.subscriptions import Wish, subscription_create
from engine.errors import SpecError
from tests.factories import make_measured_run
from tests.factories.reports import SendingClient, make_function_document, make_run_key

pytestmark = pytest.mark.django_db

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
