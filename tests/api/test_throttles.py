"""How often something may be asked for, counted across processes."""

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import Client

from analysis.accounts import rate_limit
from analysis.api.v1.base import throttles
from analysis.models import Run, Throttle
from memorymark_site.env import Rate, env_rate
from tests.factories import make_device, make_estimate, make_run, make_user

JSON = "application/json"


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands until it is set."""
    now = [1_000_000.0]
    monkeypatch.setattr(rate_limit, "time", lambda: now[0])
    return now


@pytest.fixture
def _two_a_minute(settings):
    settings.THROTTLES = {**settings.THROTTLES, **dict.fromkeys(("create", "change", "export"), Rate(2, 60.0))}


def waits(count: int, who: str = "user 1", scope: str = "create") -> list[float]:
    return [rate_limit.seconds_to_wait(scope, who) for _ in range(count)]


@pytest.mark.django_db
@pytest.mark.usefixtures("_two_a_minute")
def test_so_many_pass_at_once_and_then_one_whenever_the_next_is_free(clock):
    assert waits(4) == [0, 0, 30, 30]
    clock[0] += 30
    assert waits(2) == [0, 30]
    clock[0] += 600
    assert waits(3) == [0, 0, 30]


@pytest.mark.django_db
@pytest.mark.usefixtures("_two_a_minute")
def test_people_and_scopes_are_counted_apart(clock):
    assert waits(3)[-1] > 0
    assert waits(1, "user 2") == waits(1, scope="change") == [0]


@pytest.mark.django_db
@pytest.mark.usefixtures("_two_a_minute")
def test_who_asks_for_too_many_runs_is_told_when_again(alice_client):
    make_device()
    answers = [alice_client.post("/api/v1/runs/", {"model": "bert-tiny"}, content_type=JSON) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert answers[2].json()["code"] == "throttled"
    assert 28 <= int(answers[2].headers["Retry-After"]) <= 30
    assert Run.objects.count() == 2


@pytest.mark.django_db
@pytest.mark.usefixtures("_two_a_minute", "clock")
def test_what_is_left_is_said_before_anything_is_refused(alice_client):
    make_device()
    answers = [alice_client.post("/api/v1/runs/", {"model": "bert-tiny"}, content_type=JSON) for _ in range(3)]
    assert {answer.headers["RateLimit-Policy"] for answer in answers} == {'"create";q=2;w=60'}
    left = ['"create";r=1;t=30', '"create";r=0;t=60', '"create";r=0;t=60']
    assert [answer.headers["RateLimit"] for answer in answers] == left
    assert "RateLimit" not in alice_client.get("/api/v1/runs/").headers
    assert alice_client.get("/api/v1/runs/export.csv").headers["RateLimit"] == '"export";r=1;t=30'


@pytest.mark.django_db
@pytest.mark.usefixtures("_two_a_minute")
def test_reading_is_free_and_exports_are_not(alice_client, alice):
    run = make_run(requested_by=alice)
    assert {alice_client.get(f"/api/v1/runs/{run.pk}/").status_code for _ in range(5)} == {200}
    assert [alice_client.get("/api/v1/runs/export.csv").status_code for _ in range(3)] == [200, 200, 429]


@pytest.mark.django_db
@pytest.mark.usefixtures("_two_a_minute")
def test_a_person_is_one_whichever_way_she_shows_who_she_is(alice, alice_client):
    make_device()
    for client in (alice_client, Client()):
        client.defaults["HTTP_AUTHORIZATION"] = "Basic YWxpY2U6YWxpY2UncyBwYXNzd29yZA=="
        client.post("/api/v1/runs/", {"model": "bert-tiny"}, content_type=JSON)
    assert alice_client.post("/api/v1/runs/", {"model": "bert-tiny"}, content_type=JSON).status_code == 429


@pytest.mark.django_db
@pytest.mark.usefixtures("_two_a_minute")
def test_the_classic_endpoint_counts_as_well_in_its_own_form(alice_client):
    make_device()
    headers = {"Prefer": "respond-async"}
    answers = [
        alice_client.post("/analyze", {"model_name": "bert"}, content_type=JSON, headers=headers) for _ in range(3)
    ]
    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert (answers[2].json()["status"], "Retry-After" in answers[2].headers) == ("error", True)


@pytest.mark.django_db
@pytest.mark.usefixtures("_two_a_minute", "clock")
def test_runs_of_the_form_count_as_those_of_the_api_and_the_form_is_kept(alice_client):
    asked = {"kind": "estimate", "model": "bert-tiny", "gpu": "a10", "mode": "train", "current_batch_size": "16"}
    asked |= {"precision": "fp32", "optimizer": "adamw", "priority": "0"}
    answers = [alice_client.post("/runs/new/", asked) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [302, 302, 429]
    assert (answers[2].headers["Retry-After"], Run.objects.count()) == ("30", 2)
    assert "Try again in 30 seconds." in answers[2].text
    body = {"model": "bert-tiny", "gpu": "a10"}
    assert alice_client.post("/api/v1/estimates/", body, content_type=JSON).status_code == 429


@pytest.mark.django_db
@pytest.mark.usefixtures("_two_a_minute", "clock")
def test_many_runs_at_once_are_repeated_as_far_as_the_allowance_goes(alice, alice_client):
    ids = [make_estimate(requested_by=alice).pk for _ in range(3)]
    Run.objects.update(state="cancelled")
    answer = alice_client.post("/runs/change/", {"run": ids, "action": "retry"}, follow=True)
    assert Run.objects.queued().count() == 2
    assert "2 queued again; 1 not: Too many runs or links were created within a short time." in answer.text
    again = alice_client.post(f"/runs/{ids[0]}/repeat/", follow=True)
    assert ("Try again in 30 seconds." in again.text, Run.objects.queued().count()) == (True, 2)


@pytest.mark.django_db
@pytest.mark.usefixtures("_two_a_minute", "clock")
def test_exports_of_the_page_count_as_those_of_the_api(alice_client):
    answers = [alice_client.get(f"/{path}runs/export.csv") for path in ("api/v1/", "", "")]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert (answers[2].headers["Retry-After"], "Try again in 30 seconds." in answers[2].text) == ("30", True)


_TAKE = """
import json, sys, django
django.setup()
from django.db import connection
connection.settings_dict.update(json.loads(sys.argv[1]))
from analysis.accounts.rate_limit import seconds_to_wait
print(sum(seconds_to_wait("create", "user 1") == 0 for _ in range(40)))
"""


def test_two_processes_share_one_allowance(transactional_db):
    told = {"DJANGO_SETTINGS_MODULE": "memorymark_site.settings", "MEMORYMARK_THROTTLE_CREATE": "50/day"}
    database = {"NAME": str(connection.settings_dict["NAME"])}
    command = [sys.executable, "-c", _TAKE, json.dumps(database)]
    options = {"env": {**os.environ, **told}, "cwd": django_settings.BASE_DIR, "stdout": subprocess.PIPE}
    children = [subprocess.Popen(command, **options) for _ in range(2)]
    assert sum(int(child.communicate(timeout=60)[0]) for child in children) == 50


def test_a_rate_is_a_number_per_time():
    assert env_rate("X", "60/min", environ={}) == Rate(60, 60.0)
    assert env_rate("X", "60/min", environ={"X": "1000/day"}) == Rate(1000, 86_400.0)


@pytest.mark.parametrize("text", ["60", "0/min", "-1/min", "1.5/min", "60/fortnight", "60 / min", "many/s", "1/min;"])
def test_a_rate_that_is_none_is_refused_with_its_name(text):
    with pytest.raises(ImproperlyConfigured, match="MEMORYMARK_THROTTLE_CREATE"):
        env_rate("MEMORYMARK_THROTTLE_CREATE", "60/min", environ={"MEMORYMARK_THROTTLE_CREATE": text})


@pytest.mark.django_db
def test_who_is_not_known_is_counted_by_address(rf):
    request = rf.post("/", REMOTE_ADDR="192.0.2.7")
    request.user = None
    view = type("View", (), {"throttle_scope": "token"})()
    assert throttles.ScopeThrottle().allow_request(request, view)
    assert Throttle.objects.get().who == "address 192.0.2.7"


@pytest.mark.django_db
def test_users_are_counted_by_their_number(rf):
    request = rf.post("/")
    request.user = make_user("bob")
    assert throttles.ScopeThrottle().allow_request(request, object())
    assert (Throttle.objects.get().who, Throttle.objects.get().scope) == (f"user {request.user.pk}", "change")
