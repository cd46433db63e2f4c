"""What every answer carries, what no request gets through, and what production refuses to be."""

import io
import stat
from pathlib import Path

import pytest
from axes.models import AccessAttempt
from django.conf import settings as real
from django.core.handlers.wsgi import WSGIRequest
from django.test import Client, RequestFactory

from memorymark_site import wsgi
from tests.site.test_settings_modes import SECRET, python

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/health", "/login/", "/nowhere", "/api/v1/runs/", "/admin/"])
def test_every_answer_forbids_what_it_does_not_need(path):
    headers = Client().get(path).headers
    policy = headers["Content-Security-Policy"]
    assert all(f"{what} 'none'" in policy for what in ("frame-src", "worker-src", "media-src", "object-src"))
    assert all(f"{what} 'self'" in policy for what in ("script-src", "connect-src"))
    assert "camera=()" in headers["Permissions-Policy"]
    assert headers["Cross-Origin-Resource-Policy"] == headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == ("nosniff", "DENY")
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cache-Control"]


def test_a_page_does_not_come_back_after_its_reader_logged_out(alice_client):
    assert alice_client.get("/runs/").headers["Cache-Control"] == "private, no-store"


def test_no_proxy_keeps_what_the_api_tells_one_person(alice_client):
    assert alice_client.get("/api/v1/runs/").headers["Cache-Control"].startswith("private")


def test_production_redirects_to_https_for_a_year_and_sends_cookies_there_alone(tmp_path):
    show = (
        "from memorymark_site import settings as s; print(s.SECURE_HSTS_SECONDS, s.SECURE_SSL_REDIRECT, "
        "s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, s.SESSION_COOKIE_HTTPONLY, s.SESSION_COOKIE_SAMESITE, s.DEBUG)"
    )
    done = python("-c", show, folder=tmp_path, MEMORYMARK_PRODUCTION="1", SECRET_KEY=SECRET)
    assert done.stdout == "31536000 True True True True Lax False\n", done.stderr


def test_production_refuses_to_show_debug_pages(tmp_path):
    given = {"MEMORYMARK_PRODUCTION": "1", "MEMORYMARK_DEBUG": "1", "SECRET_KEY": SECRET}
    done = python("-c", "import memorymark_site.settings", folder=tmp_path, **given)
    assert done.stderr.splitlines()[-1].endswith("not in production")


@pytest.mark.parametrize("path", ["/login/", "/analyze", "/api/v1/runs/", "/runs/change/", "/admin/", "/nowhere"])
def test_ten_megabytes_are_refused_before_anybody_reads_them(path, alice_client):
    for content_type in ("application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert alice_client.post(path, b"a" * 10_000_000, content_type=content_type).status_code == 413


def test_a_refusal_of_a_large_body_has_the_form_of_its_address(alice_client):
    large = {"data": b"1" * 2_000_000, "content_type": "application/json"}
    assert alice_client.post("/api/v1/runs/", **large).headers["Content-Type"] == "application/problem+json"
    assert alice_client.post("/analyze", **large).json()["status"] == "error"


def test_files_are_not_taken(alice_client):
    form = {"file": io.BytesIO(b"x"), "model": "bert"}
    assert alice_client.post("/runs/new/", form).status_code == 400


@pytest.mark.parametrize("charset", ["hex", "zip", "utf-7", "utf-16", "rot13", "idna", "undefined", "no such thing"])
def test_text_is_utf_8_whatever_a_request_says(charset, monkeypatch):
    """At the server's entry point: Django fails on such a codec while it makes its request."""
    monkeypatch.setattr(wsgi, "_django", lambda environ, start_response: [WSGIRequest(environ).GET["q"]])
    environ = RequestFactory().get("/?q=%c3%a9").environ | {"CONTENT_TYPE": f"text/plain; Charset={charset}; a=b"}
    assert wsgi.application(environ, print) == ["é"]
    assert environ["CONTENT_TYPE"] == "text/plain; a=b"


@pytest.mark.parametrize(
    "path", ["/runs/?q=%00", "/compare/?ids=1%00", "/api/v1/runs/?model=%00", "/%00", "/runs/%00/"]
)
def test_no_address_holds_a_nul(path, alice_client):
    assert alice_client.get(path).status_code == 400


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example/", "javascript:alert(1)", "/\\evil.example"]
)
def test_a_login_leads_to_no_other_site(target, alice, settings):
    form = {"username": "alice", "password": "alice's password"}
    response = Client().post(f"/login/?next={target}", {**form, "next": target})
    assert (response.status_code, response.headers["Location"]) == (302, "/")


def test_a_name_longer_than_any_is_refused_before_it_is_counted_as_a_failure():
    """PostgreSQL stores no longer one than its column, and answered 500."""
    response = Client().post("/login/", {"username": "a" * 300, "password": "x"})
    assert (response.status_code, AccessAttempt.objects.count()) == (200, 0)


def test_a_lock_or_data_folder_that_is_made_is_its_owners_alone(tmp_path):
    assert python("-c", "import memorymark_site.settings", folder=tmp_path / "data").returncode == 0
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_no_script_of_ours_reads_cookies_or_writes_markup():
    scripts = [path.read_text() for path in (Path(real.BASE_DIR) / "static").rglob("*.js")]
    assert scripts
    assert not any("document.cookie" in script or "innerHTML" in script or "eval(" in script for script in scripts)
