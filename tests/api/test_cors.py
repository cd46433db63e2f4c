"""Pages of other sites: closed by default, for the API and the classic endpoints alone, and never with a session."""

import pytest
from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured

from memorymark_site.env import env_origins

pytestmark = pytest.mark.django_db

ORIGIN = "https://lab.example"


def asked(client, path: str = "/api/v1/runs/") -> dict[str, str]:
    asks = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "idempotency-key",
    }
    answers = client.options(path, headers=asks), client.get(path, headers={"Origin": ORIGIN})
    return {name.lower(): value for answer in answers for name, value in answer.headers.items()}


def test_it_is_closed_until_an_origin_is_named(client):
    assert "access-control-allow-origin" not in asked(client)


@pytest.mark.parametrize("path", ["/api/v1/runs/", "/health", "/models", "/analyze"])
def test_an_origin_that_is_named_reads_the_headers_it_needs(client, settings, path):
    settings.CORS_ALLOWED_ORIGINS = [ORIGIN]
    headers = asked(client, path)
    assert headers["access-control-allow-origin"] == ORIGIN
    assert {"idempotency-key", "prefer"} <= set(headers["access-control-allow-headers"].split(", "))
    assert {"ETag", "Location", "Retry-After"} <= set(headers["access-control-expose-headers"].split(", "))


@pytest.mark.parametrize("everybody", [True, False])
def test_a_session_never_crosses(client, settings, everybody):
    settings.CORS_ALLOW_ALL_ORIGINS, settings.CORS_ALLOWED_ORIGINS = everybody, [ORIGIN]
    headers = asked(client)
    assert headers["access-control-allow-origin"] == ("*" if everybody else ORIGIN)
    assert "access-control-allow-credentials" not in headers
    assert django_settings.CORS_ALLOW_CREDENTIALS is False


def test_a_named_origin_needs_a_token_to_start_a_run_also_on_this_machine(client, settings):
    settings.CORS_ALLOWED_ORIGINS, settings.SERVES_THIS_MACHINE_ONLY = [ORIGIN], True
    answer = client.post("/analyze", '{"model_name": "bert"}', "application/json", headers={"Origin": ORIGIN})
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (401, ORIGIN)


@pytest.mark.parametrize("path", ["/", "/login/", "/admin/login/", "/runs/", "/metrics", "/readyz"])
def test_what_is_not_the_api_stays_closed(client, settings, path):
    settings.CORS_ALLOW_ALL_ORIGINS = True
    assert "access-control-allow-origin" not in asked(client, path)


def test_everybody_is_meant_only_by_a_star_alone():
    assert env_origins("X", environ={"X": " * "}) == (True, [])
    assert env_origins("X", environ={"X": f"{ORIGIN}, http://b"}) == (False, [ORIGIN, "http://b"])
    assert env_origins("X", environ={}) == (False, [])
    with pytest.raises(ImproperlyConfigured, match="'\\*' is not allowed"):
        env_origins("X", environ={"X": f"{ORIGIN},*"})
