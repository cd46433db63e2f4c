"""A database that is away or locked: programs are told to try again, in the form of their address."""

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import InterfaceError, OperationalError
from django.test import Client

from analysis.api import run_bodies
from analysis.pages.fleet import views as fleet
from analysis.runs import services
from tests.factories import make_device, make_user

pytestmark = pytest.mark.django_db
AWAY = [OperationalError("database is locked"), InterfaceError("connection already closed")]


@pytest.fixture
def quiet_client() -> Client:
    """Gets the answer that a program gets, where Django's test client would raise."""
    client = Client(raise_request_exception=False)
    client.force_login(make_user("alice"))
    return client


def refuse(monkeypatch: pytest.MonkeyPatch, target: object, name: str, error: Exception) -> None:
    def raise_it(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(target, name, raise_it)


@pytest.mark.parametrize("error", AWAY, ids=str)
def test_a_run_that_cannot_be_stored_now_may_be_asked_for_again(quiet_client, monkeypatch, error):
    make_device()
    refuse(monkeypatch, run_bodies, "run_create", error)
    answer = quiet_client.post("/api/v1/runs/", {"model": "bert-tiny"}, content_type="application/json")
    assert (answer.status_code, answer.headers["Content-Type"]) == (503, "application/problem+json")
    assert int(answer.headers["Retry-After"]) > 0
    body = answer.json()
    assert (body["code"], body["status"], body["request_id"]) == ("unavailable", 503, answer.headers["X-Request-ID"])
    assert "nothing was stored" in body["detail"]
    assert str(error) not in answer.text


def test_who_is_signed_in_cannot_be_read_either(quiet_client, monkeypatch):
    """Before any view is reached."""
    refuse(monkeypatch, SessionStore, "_get_session_from_db", AWAY[0])
    answer = quiet_client.get("/api/v1/runs/")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")


def test_a_classic_endpoint_answers_in_its_own_form(quiet_client, monkeypatch):
    make_device()
    refuse(monkeypatch, services, "run_create", AWAY[0])
    answer = quiet_client.post("/analyze", {"model_name": "bert"}, content_type="application/json")
    assert (answer.status_code, answer.json()["status"], int(answer.headers["Retry-After"]) > 0) == (503, "error", True)


def test_a_page_says_so_too(quiet_client, monkeypatch):
    refuse(monkeypatch, fleet, "waiting_runs", AWAY[0])
    answer = quiet_client.get("/fleet/", headers={"Accept": "text/html"})
    assert answer.status_code == 503
    assert "The database does not answer at the moment" in answer.text
    assert answer.headers["Retry-After"]
