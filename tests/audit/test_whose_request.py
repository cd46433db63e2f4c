"""Each request has an id and a person, and no thread takes them along into the next one."""

import base64
import logging

import pytest
from django.test import Client, RequestFactory

from analysis.accounts.tokens import token_create
from analysis.audit.context import RequestIdFilter, cause_now
from analysis.audit.middleware import RequestIdMiddleware
from analysis.models import AuditEntry
from tests.factories import make_device, make_run

pytestmark = pytest.mark.django_db


def test_a_well_formed_id_is_taken_and_is_on_the_answer(client):
    assert client.get("/health", headers={"x-request-id": "ci-17.b_2"})["X-Request-ID"] == "ci-17.b_2"


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "ü", "<script>", "a;b"])
def test_any_other_id_is_replaced(client, given):
    made = client.get("/health", headers={"x-request-id": given})["X-Request-ID"]
    assert made != given
    assert len(made) == 32


def test_errors_have_an_id_too(client):
    assert client.get("/no/such/page")["X-Request-ID"]
    assert client.post("/analyze", "{", "application/json")["X-Request-ID"]


def test_a_person_known_by_token_password_or_session_is_the_actor(alice, alice_client):
    make_device()
    _token, secret = token_create(owner=alice, name="ci", may_write=True, expires_at=None)
    password = base64.b64encode(b"alice:alice's password").decode()
    ways = [(Client(), f"Bearer {secret}"), (Client(), f"Basic {password}"), (alice_client, "")]
    for client, shown in ways:
        headers = {"authorization": shown} if shown else {}
        answer = client.post("/api/v1/runs/", {"model": "bert-tiny"}, "application/json", headers=headers)
        assert answer.status_code in (201, 202), answer.content
    created = AuditEntry.objects.filter(action="run.create")
    assert [each.actor_name for each in created] == ["alice"] * 3


def test_nothing_of_a_request_is_left_when_it_was_answered_or_raised(alice):
    def fails(request):
        assert cause_now().request_id == request.request_id
        raise RuntimeError

    request = RequestFactory().get("/", headers={"x-request-id": "first"})
    request.user = alice
    with pytest.raises(RuntimeError):
        RequestIdMiddleware(fails)(request)
    make_run()
    found = AuditEntry.objects.get(action="run.create")
    assert (found.actor, found.actor_name, found.request_id, found.remote_address) == (None, "", "", None)


def test_a_line_of_the_log_names_its_request():
    lines = []

    def logs(request):
        line = logging.LogRecord("analysis", logging.INFO, "", 1, "hello", (), None)
        RequestIdFilter().filter(line)
        lines.append(line.request_text)
        raise ValueError

    with pytest.raises(ValueError, match="^$"):
        RequestIdMiddleware(logs)(RequestFactory().get("/", headers={"x-request-id": "abc"}))
    outside = logging.LogRecord("analysis", logging.INFO, "", 1, "hello", (), None)
    RequestIdFilter().filter(outside)
    assert [*lines, outside.request_text] == [" [abc]", ""]
