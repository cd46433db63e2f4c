"""A reported run says everywhere who reported it, from where, and that it counts for nothing yet."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.models import Run
from analysis.runs import services
from engine.trainings.script.spec import TuneSpec
from tests.api.test_reported_events import make_silent
from tests.factories import make_device, make_measured_run
from tests.factories.pages import words
from tests.factories.reports import HOST, SendingClient, make_events, make_reported_run, make_run_key

pytestmark = pytest.mark.django_db
ORIGIN = f"reported by alice from {HOST}"
BROWSER = {"Accept": "text/html"}
NOT_TRUSTED = "Not trusted yet: left out of recommendations"


def live_run(alice: User) -> Run:
    sender = SendingClient(alice)
    sender.begin(key := make_run_key())
    sender.send_events(key, 0, *make_events())
    return Run.objects.get(report__run_key=key)


def text_of(client: Client, address: str) -> str:
    answer = client.get(address, headers=BROWSER)
    assert answer.status_code == 200
    return words(answer.content.decode())


def test_the_page_of_a_finished_one_names_its_origin_its_clock_and_that_it_is_not_trusted(alice, alice_client, root):
    run = make_reported_run(alice)
    text = text_of(alice_client, f"/runs/{run.pk}/")
    assert ORIGIN in text
    assert NOT_TRUSTED in text
    assert f"began 2026-11-20 10:00 UTC by the clock of {HOST}" in text
    assert "Pin as baseline" not in text
    assert "Time again" not in text
    services.trust_give(by=root, host=HOST)
    text = text_of(alice_client, f"/runs/{run.pk}/")
    assert ORIGIN in text
    assert NOT_TRUSTED not in text
    assert "Pin as baseline" in text


def test_only_a_manager_is_led_to_where_trust_is_given(alice, alice_client, root_client):
    run = make_reported_run(alice)
    link = f"/admin/analysis/trust/add/?run={run.pk}"
    assert link in root_client.get(f"/runs/{run.pk}/").content.decode()
    assert link not in alice_client.get(f"/runs/{run.pk}/").content.decode()


def test_the_page_of_a_live_one_says_so_too_and_of_a_silent_one_what_brings_it_back(alice, alice_client):
    run = live_run(alice)
    text = text_of(alice_client, f"/runs/{run.pk}/")
    assert ORIGIN in text
    assert NOT_TRUSTED in text
    make_silent(run)
    assert "the run is marked as interrupted" in text_of(alice_client, f"/runs/{run.pk}/")
    services.runs_reap()
    text = text_of(alice_client, f"/runs/{run.pk}/")
    assert "Its sender went silent" in text
    assert "memorymark sync" in text


def test_the_page_of_one_that_was_stopped_says_by_what_and_not_that_it_fell_silent(alice, alice_client):
    run = live_run(alice)
    stop = {"event": "error", "error": {"code": "stopped", "message": "stopped by SIGTERM where it ran"}}
    SendingClient(alice).send_events(run.report.run_key, 4, stop)
    text = text_of(alice_client, f"/runs/{run.pk}/")
    assert "It was stopped where it ran" in text
    assert "stopped by SIGTERM where it ran" in text
    assert "went silent" not in text


@pytest.mark.parametrize(
    ("device", "place"), [("cpu", "on the CPU:"), ("cuda:1", "on a GPU:"), ("auto", f"on a device of {HOST}:")]
)
def test_the_page_of_a_script_that_failed_at_once_names_no_choice(alice, alice_client, device: str, place: str):
    sender = SendingClient(alice)
    spec = TuneSpec(("python", "train.py", "{batch_size}"), device=device)
    sender.begin(key := make_run_key(), kind="command", spec=spec.to_dict())
    message = f"the training failed: KeyError: its output stayed on {HOST}"
    error = {"event": "error", "error": {"code": "workload_failed", "message": message, "exit_status": 1}}
    sender.send_events(key, 0, error)
    text = text_of(alice_client, f"/runs/{Run.objects.get(report__run_key=key).pk}/")
    assert f"train.py {place}" in text
    assert f"stayed on {HOST}, where the failed command named its log (~/.cache/memorymark)" in text
    assert "Start it with --report-output" in text
    assert "the end of the log below" not in text


def test_lists_name_the_origin_and_only_of_reported_runs(alice, alice_client):
    make_measured_run(make_device())
    make_reported_run(alice)
    recent = alice_client.get("/", headers=BROWSER).content.decode()
    assert recent.count(f'title="{ORIGIN}.') == recent.count("chip-origin") == 1  # a short chip, whole in its title
    lines = alice_client.get("/runs/").content.decode()
    assert lines.count(f'title="{ORIGIN}.') == 1
    assert lines.count("chip-origin") == 1
    assert "measured here" in text_of(alice_client, "/runs/?columns=run,origin")


def test_a_guest_sees_that_it_was_reported_but_no_name(alice, client: Client, settings):
    settings.PUBLIC_READ_ONLY = True
    run = make_reported_run(alice)
    for address in (f"/runs/{run.pk}/", "/"):
        page = client.get(address, headers=BROWSER).content.decode()
        assert "reported" in page
        assert HOST not in page
        assert "alice" not in page


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("here", {"own"}),
        ("reported", {"theirs", "trusted"}),
        ("trusted", {"trusted"}),
        ("here-or-trusted", {"own", "trusted"}),
        ("untrusted", {"theirs"}),
    ],
)
def test_the_history_and_the_api_filter_by_origin(alice, alice_client, root, origin: str, expected: set[str]):
    names = {make_measured_run(make_device()).pk: "own", make_reported_run(alice).pk: "theirs"}
    names[make_reported_run(alice, host="trusted").pk] = "trusted"
    services.trust_give(by=root, host="trusted")
    rows = alice_client.get(f"/api/v1/runs/?origin={origin}").json()["results"]
    assert {names[row["id"]] for row in rows} == expected
    exported = json.loads(b"".join(alice_client.get(f"/runs/export.json?origin={origin}").streaming_content))
    assert {names[row["id"]] for row in exported} == expected


def test_the_api_and_the_export_name_the_origin(alice, alice_client):
    own, run = make_measured_run(make_device()), make_reported_run(alice)
    rows = {row["id"]: row for row in alice_client.get("/api/v1/runs/").json()["results"]}
    origins = [
        (rows[each.pk]["origin"], rows[each.pk]["reported_from"], rows[each.pk]["is_trusted"]) for each in (own, run)
    ]
    assert origins == [(None, "", True), (ORIGIN, HOST, False)]
    one: dict[str, Any] = alice_client.get(f"/api/v1/runs/{run.pk}/").json()
    assert one["origin"] == ORIGIN
    head, *lines = b"".join(alice_client.get("/runs/export.csv").streaming_content).decode().splitlines()
    place = head.split(",").index("reported_from")
    assert sorted(line.split(",")[place] for line in lines) == ["", HOST]


def test_the_fleet_names_its_device_as_reported_and_no_form_offers_it(alice, alice_client):
    make_reported_run(alice)
    text = text_of(alice_client, "/fleet/")
    assert "Reported from elsewhere" in text
    assert HOST in text
    assert HOST not in text_of(alice_client, "/").replace(ORIGIN, "")
    assert alice_client.get("/api/v1/devices/").json()["results"] == []


def test_the_panel_filters_runs_by_origin(alice, root_client):
    own, run = make_measured_run(make_device()), make_reported_run(alice)
    page = root_client.get("/admin/analysis/run/?origin=untrusted").content.decode()
    assert ORIGIN in page
    assert f"/admin/analysis/run/{run.pk}/change/" in page
    assert f"/admin/analysis/run/{own.pk}/change/" not in page


def test_a_comparison_names_the_origin_and_takes_what_is_trusted_for_its_baseline(alice, alice_client):
    run, own = make_reported_run(alice), make_measured_run(make_device())
    text = text_of(alice_client, f"/compare/?ids={run.pk},{own.pk}")
    assert ORIGIN in text
    assert f"difference to run {own.pk}" in text
