"""Every refusal under /api/ is a problem (RFC 9457), and what a stranger sends is read strictly."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from rest_framework.exceptions import ValidationError as BodyError
from rest_framework.response import Response

from analysis.accounts.quotas import QuotaExceededError
from analysis.api.exception_handler import api_exception
from analysis.http.problem_details import into_problem
from analysis.http.strict_json import BadJsonError, strict_json
from analysis.models import Run
from tests.factories import make_device

JSON = "application/json"
MEMBERS = {"type", "title", "status", "detail", "instance", "code", "errors", "request_id"}


def is_problem(answer, status: int, code: str) -> bool:
    body = answer.json()
    told = (answer.status_code, answer.headers["Content-Type"], body["status"], body["code"], set(body))
    return told == (status, "application/problem+json", status, code, MEMBERS)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("get", "/api/nope", 404, "not_found"),
        ("get", "/api/v1/nope/", 404, "not_found"),
        ("get", "/api/v1/runs/9223372036854775808/", 404, "not_found"),
        ("put", "/api/v1/runs/", 405, "method_not_allowed"),
        ("options", "/api/v1/runs/", 405, "method_not_allowed"),
        ("get", "/api/v1/runs/1/cancel/", 405, "method_not_allowed"),
    ],
)
def test_what_is_not_there_is_a_problem(alice_client, method, path, status, code):
    answer = getattr(alice_client, method)(path)
    assert is_problem(answer, status, code)
    assert answer.json()["request_id"] == answer.headers["X-Request-ID"]


@pytest.mark.django_db
def test_a_run_that_is_not_there_is_named_in_plain_words(alice_client):
    assert alice_client.get("/api/v1/runs/7/").json()["detail"] == "There is no such run."


@pytest.mark.django_db
def test_who_is_not_known_gets_a_401_that_says_how(client):
    answer = client.get("/api/v1/runs/")
    assert is_problem(answer, 401, "not_authenticated")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.django_db
def test_another_form_than_json_is_neither_answered_nor_read(alice_client):
    assert is_problem(alice_client.get("/api/v1/runs/", headers={"Accept": "application/xml"}), 406, "not_acceptable")
    answer = alice_client.post("/api/v1/runs/", "model: bert", content_type="application/yaml")
    assert is_problem(answer, 415, "unsupported_media_type")


@pytest.mark.django_db
def test_a_session_without_its_token_changes_nothing(alice):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert is_problem(client.post("/api/v1/runs/", {"model": "bert"}, content_type=JSON), 403, "permission_denied")


@pytest.mark.django_db
def test_a_bug_is_a_500_that_shows_nothing_of_it(alice, monkeypatch):
    monkeypatch.setattr("analysis.api.v1.run.runs.requested_runs", lambda query, filters: 1 / 0)
    client = Client(raise_request_exception=False)
    client.force_login(alice)
    answer = client.get("/api/v1/runs/")
    assert is_problem(answer, 500, "internal")
    assert "division" not in answer.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "valid JSON"),
        (b"", None),
        (b'{"model": "bert", "hours_per_run": NaN}', "NaN is not a JSON number"),
        (b'{"model": "bert", "hours_per_run": 1e999}', "too large"),
        (b'{"model": "bert", "max_batch_size": 123456789012345678901234567890}', "too large"),
        (b'{"model": "bert", "model": "gpt2"}', "given twice"),
        (b'{"model": "be\\u0000rt"}', "cannot be stored"),
        (b'{"model": "\\ud83d"}', "cannot be stored"),
        (b'{"\\u0000": 1}', "cannot be stored"),
        (b'{"model": "\xff"}', "UTF-8"),
        (b"[" * 30_000, "valid JSON"),
        (b'{"model": ' * 40 + b"1" + b"}" * 40, "deeper"),
        (b'["model"]', "JSON object"),
        (b"null", "JSON object"),
    ],
)
def test_what_is_no_body_of_ours_is_a_400(alice_client, body, words):
    make_device()
    answer = alice_client.post("/api/v1/runs/", body, content_type=JSON)
    assert answer.status_code == 400
    assert (words or "model: is required") in answer.json()["detail"]
    assert not Run.objects.exists()


def test_a_surrogate_pair_is_one_character():
    assert strict_json(b'"\\ud83d\\ude00"') == "\U0001f600"


def test_a_hostile_name_of_a_key_is_shown_harmlessly():
    with pytest.raises(BadJsonError, match=r"“\\u2028a”"):
        strict_json('{"\u2028a": 1, "\u2028a": 2}'.encode())


def test_a_nested_refusal_points_to_its_place(rf):
    errors = {"tags": {1: ["is too long"]}, "non_field_errors": ["is odd"], "a": [{"b/c": ["is bad"]}]}
    problem = into_problem(Response(status=400), BodyError(errors), rf.get("/api/v1/runs/"))
    pointers = [error["pointer"] for error in problem.data["errors"]]
    assert pointers == ["/tags/1", "", "/a/0/b~1c"]


def test_a_quota_is_a_429_that_says_when(rf):
    error = QuotaExceededError("runs_per_day_max", "Used up.", frees_at=None, retry_after_seconds=90)
    for path, key in (("/api/v1/runs/", "detail"), ("/analyze", "error")):
        answer = api_exception(error, {"request": rf.post(path)})
        assert (answer.status_code, answer.headers["Retry-After"], answer.data[key]) == (429, "90", "Used up.")


def test_a_refusal_of_a_row_names_its_column(rf):
    answer = api_exception(ValidationError({"name": ["is taken"]}), {"request": rf.post("/api/v1/x/")})
    assert answer.data["errors"] == [{"pointer": "/name", "detail": "is taken", "code": "invalid"}]
