"""Who may start a run through the classic endpoint."""

from base64 import b64encode

import pytest
from django.test import Client

from analysis.models import Run
from tests.factories import make_device

pytestmark = pytest.mark.django_db

BODY = '{"model_name": "bert"}'


def post(client: Client, *, content_type: str = "application/json", remote: str = "127.0.0.1", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = client.post(
        "/analyze", BODY, content_type=content_type, headers={"prefer": "respond-async", **named}, REMOTE_ADDR=remote
    )
    assert answer.status_code == 202 or answer.json()["status"] == "error"
    return answer.status_code


@pytest.fixture
def local(settings) -> None:
    settings.SERVES_THIS_MACHINE_ONLY = True
    make_device()


def test_a_program_on_this_machine_needs_no_login(client, local):
    assert post(client) == 202
    assert Run.objects.get().requested_by is None


def test_a_run_that_belongs_to_nobody_is_short_and_waits_for_none(client, alice_client, local):
    assert post(client) == 202
    assert Run.objects.get().spec["time_budget_seconds"] == 600
    refused = client.post("/analyze", BODY, content_type="application/json")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    assert "run 1 is not over" in refused.json()["error"].replace(str(Run.objects.get().pk), "1")
    assert post(alice_client) == 202
    assert Run.objects.count() == 2


def test_a_long_run_needs_somebody_it_belongs_to(client, local):
    body = '{"model_name": "bert", "time_budget_seconds": 601}'
    refused = client.post("/analyze", body, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]) == (400, "time_budget_seconds: at most 600 without a login")


@pytest.mark.parametrize("remote", ["127.0.0.1", "::1", "127.8.8.8"])
def test_every_loopback_address_is_this_machine(client, local, remote):
    assert post(client, remote=remote) == 202


@pytest.mark.parametrize(
    "circumstances",
    [
        {"remote": "192.0.2.7"},
        {"remote": ""},
        {"x_forwarded_for": "192.0.2.7"},
        {"forwarded": "for=192.0.2.7"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": "https://elsewhere.example"},
        {"origin": "null"},
    ],
)
def test_whatever_may_come_from_elsewhere_needs_a_login(client, local, circumstances):
    assert post(client, **circumstances) == 401
    assert not Run.objects.exists()


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_of_another_type_is_named_as_what_is_wrong(client, alice_client, local, content_type):
    for each in (client, alice_client):
        answer = each.post("/analyze", BODY, content_type=content_type)
        message = f"The body must be JSON, not {content_type}: send it with the header Content-Type: application/json"
        assert (answer.status_code, answer.json()["error"]) == (415, message)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "circumstances",
    [{"sec_fetch_site": "same-origin"}, {"sec_fetch_site": "none"}, {"origin": "http://testserver"}],
)
def test_the_servers_own_pages_need_no_login_here(client, local, circumstances):
    assert post(client, **circumstances) == 202


def test_a_server_for_others_asks_everybody_to_sign_in(client):
    answer = client.post("/analyze", BODY, content_type="application/json")
    assert answer.status_code == 401
    assert answer.json() == {"status": "error", "error": "Authentication credentials were not provided."}
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="MemoryMark", Basic realm="MemoryMark"'


def test_a_name_and_a_password_will_do(client, alice):
    make_device()
    credentials = b64encode(b"alice:alice's password").decode()
    assert post(client, authorization=f"Basic {credentials}", remote="192.0.2.7") == 202
    assert Run.objects.get().requested_by == alice


def test_a_wrong_password_will_not(client, alice, local):
    credentials = b64encode(b"alice:bob's password").decode()
    assert post(client, authorization=f"Basic {credentials}") == 401


def test_a_session_without_its_csrf_token_will_not(alice, local):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert post(client) == 403
