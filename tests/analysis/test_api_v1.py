"""Version 1: stored runs, for whoever is signed in."""

from __future__ import annotations

import pytest

from analysis import services
from analysis.models import Run
from tests.factories import make_card, make_claimed_run, make_device, make_probe, make_result, make_run

pytestmark = pytest.mark.django_db


def test_nobody_reads_without_login(client):
    assert client.get("/api/v1/runs/").status_code == 401


def test_runs_are_listed_newest_first_in_pages_that_stay_put(alice_client, monkeypatch):
    monkeypatch.setattr("analysis.api.v1.NewestFirst.page_size", 2)
    device = make_device()
    runs = [make_run(device) for _ in range(3)]
    first = alice_client.get("/api/v1/runs/").json()
    make_run(device)
    second = alice_client.get(first["next"]).json()
    assert [run["id"] for run in first["results"]] == [runs[2].pk, runs[1].pk]
    assert [run["id"] for run in second["results"]] == [runs[0].pk]


def test_a_list_takes_the_same_queries_however_long(alice_client, django_assert_num_queries):
    device = make_device()
    for _ in range(5):
        make_run(device)
    with django_assert_num_queries(10):  # session, user, rows; the others are the forecast
        body = alice_client.get("/api/v1/runs/").json()
    assert body["results"][0]["asks_device"] == "cpu"
    assert "result" not in body["results"][0]


def test_a_run_is_shown_with_its_probes_and_its_result(alice_client):
    run = make_claimed_run()
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(8), sequence=1)
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    body = alice_client.get(f"/api/v1/runs/{run.pk}/").json()
    assert (body["state"], body["largest_batch_size"], body["spec"]["model"]) == ("finished", 8, "bert-tiny")
    assert [(m["batch_size"], m["peak_allocated_bytes"]) for m in body["measurements"]] == [(8, 800 * 1024**2)]
    assert body["result"]["boundary"]["certified"] is True


def test_neither_token_nor_owner_of_a_run_is_shown(alice_client):
    run = make_claimed_run()
    assert run.token not in alice_client.get(f"/api/v1/runs/{run.pk}/").content.decode()


def test_a_run_is_stored_and_its_address_given(alice_client, alice):
    make_device()
    answer = alice_client.post("/api/v1/runs/", {"model": "bert-tiny"}, content_type="application/json")
    run = Run.objects.get()
    assert (answer.status_code, answer.json()["id"], run.requested_by) == (202, run.pk, alice)
    assert answer.headers["Location"] == f"http://testserver/api/v1/runs/{run.pk}/"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "model: is required; one of bert, "),
        ({"model": "bert", "mode": "sleep"}, "mode: 'sleep' is not offered; one of train, eval"),
        ({"model": "bert", "colour": 1}, "colour: unknown key; allowed are model, "),
    ],
)
def test_a_spec_that_is_not_allowed_is_refused_by_field(alice_client, body, message):
    make_device()
    answer = alice_client.post("/api/v1/runs/", body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(message)
    assert not Run.objects.exists()


@pytest.mark.parametrize("path", ["/api/v1/runs/999/", "/api/v1/runs/?cursor=nonsense"])
def test_what_is_not_there_is_a_404_of_the_usual_form(alice_client, path):
    answer = alice_client.get(path)
    assert (answer.status_code, answer.json()["status"]) == (404, "error")


def test_a_waiting_run_tells_its_turn(alice_client):
    card = make_card()
    make_run(card)
    body = {"model": "bert-tiny", "device_class": "A100", "priority": -1, "accepts_shared_device": True}
    answer = alice_client.post("/api/v1/runs/", body, content_type="application/json").json()
    asked = {name: answer[name] for name in ("asks_kind", "asks_device_class", "priority", "accepts_shared_device")}
    assert asked == {"asks_kind": "cuda", "asks_device_class": "A100", "priority": -1, "accepts_shared_device": True}
    assert (answer["device"], answer["host"], answer["queue_position"], answer["expected_start_at"]) == (
        None,
        None,
        2,
        None,
    )
    assert alice_client.get("/api/v1/runs/").json()["results"][0]["queue_position"] == 2


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"device_class": "H100"}, "device_class: no enabled device is called H100"),
        ({"device_class": 7}, "device_class: must be text"),
        ({"priority": "high"}, "priority: must be a whole number"),
        ({"priority": True}, "priority: must be a whole number"),
        ({"priority": 1}, "priority: high is for GPU managers"),
        ({"accepts_shared_device": 1}, "accepts_shared_device: must be true or false"),
    ],
)
def test_a_wrong_place_in_the_queue_names_its_field(alice_client, asked, words):
    make_card()
    answer = alice_client.post("/api/v1/runs/", {"model": "bert-tiny", **asked}, content_type="application/json")
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_the_attempts_of_a_run_are_shown(alice_client):
    run = make_claimed_run()
    services.run_fail(run_id=run.pk, token=run.token, code="workload_failed", message="the loss", exit_status=1)
    [attempt] = alice_client.get(f"/api/v1/runs/{run.pk}/").json()["attempts"]
    assert (attempt["number"], attempt["device"], attempt["host"], attempt["cause"], attempt["message"]) == (
        1,
        "cpu",
        "lab",
        "workload_failed",
        "the loss",
    )
