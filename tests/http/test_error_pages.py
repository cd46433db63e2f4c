"""Error pages: what they say, and that those of a failing server need nothing but themselves."""

import base64
import hashlib
import re
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.contrib.sessions.backends.db import SessionStore
from django.db import OperationalError
from django.http import HttpResponse
from django.test import Client

from memorymark_site.env import Rate

pytestmark = pytest.mark.django_db

HTML = {"accept": "text/html"}


@pytest.fixture
def browser(alice_client: Client) -> Client:
    """Gets the page that a person gets, where Django's test client would raise."""
    alice_client.raise_request_exception = False
    return alice_client


def broken(browser: Client, monkeypatch: pytest.MonkeyPatch) -> HttpResponse:
    monkeypatch.setattr("analysis.pages.history.views.lines", lambda *runs, **told: 1 / 0)
    answer = browser.get("/runs/", headers=HTML)
    assert answer.exc_info[0] is ZeroDivisionError
    return answer


def without_database(browser: Client, monkeypatch: pytest.MonkeyPatch) -> HttpResponse:
    def away(*args: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(SessionStore, "_get_session_from_db", away)
    return browser.get("/runs/", headers=HTML)


def of_another_name(browser: Client, monkeypatch: pytest.MonkeyPatch) -> HttpResponse:
    return browser.get("/runs/", headers={**HTML, "host": "evil.example"})


def too_often(browser: Client, monkeypatch: pytest.MonkeyPatch) -> HttpResponse:
    monkeypatch.setattr(django_settings, "THROTTLES", {**django_settings.THROTTLES, "share": Rate(1, 60.0)})
    browser.get("/share/unknown/", headers=HTML)
    return browser.get("/share/unknown/", headers=HTML)


def exported_too_often(browser: Client, monkeypatch: pytest.MonkeyPatch) -> HttpResponse:
    monkeypatch.setattr(django_settings, "THROTTLES", {**django_settings.THROTTLES, "export": Rate(1, 60.0)})
    browser.get("/runs/export.csv", headers=HTML)
    return browser.get("/runs/export.csv", headers=HTML)


@pytest.mark.parametrize(
    ("visit", "status", "title"),
    [
        (of_another_name, 400, "Bad request"),
        (too_often, 429, "Too many requests"),
        (exported_too_often, 429, "Too many requests"),
        (broken, 500, "Server error"),
        (without_database, 503, "Database unavailable"),
    ],
)
def test_a_page_of_a_failing_server_loads_nothing_and_its_style_is_allowed(
    browser: Client, monkeypatch: pytest.MonkeyPatch, visit, status: int, title: str
) -> None:
    answer = visit(browser, monkeypatch)
    text = answer.content.decode()
    assert (answer.status_code, f"<h1>{title}</h1>" in text) == (status, True)
    assert '<a class="button" href="/">Go to the start page</a>' in text
    assert re.findall(r'(?:src|href)="(?!/"|data:,)([^"]*)"', text) == []
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = answer.headers["Content-Security-Policy"]
    assert f"style-src 'self' 'sha256-{digest}';" in policy
    assert "unsafe" not in policy


def test_its_colours_are_those_of_the_pages() -> None:
    root = Path(django_settings.BASE_DIR)
    tokens = set(re.findall(r"#[0-9a-f]{3,8}", (root / "static/css/tokens.css").read_text()))
    assert set(re.findall(r"#[0-9a-f]{6}", (root / "templates/error.css").read_text())) <= tokens


def test_what_is_missing_and_what_is_forbidden_say_so_in_plain_words(alice_client: Client) -> None:
    answer = alice_client.get("/nothing/here/", headers=HTML)
    assert (answer.status_code, "Page not found" in (missing := answer.content.decode())) == (404, True)
    assert "There is nothing at this address. It may have been deleted." in missing
    forbidden = alice_client.get("/admin/", headers=HTML)
    assert forbidden.status_code == 403
    assert "You may not open this page. Ask a GPU manager." in " ".join(forbidden.content.decode().split())
    for page in (missing, forbidden.content.decode()):
        assert "Go to the start page</a>" in page
