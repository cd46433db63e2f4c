"""Version 1: runs are listed, stored, read, written on and deleted."""

import json

import pytest
from django.test import Client
from django.utils import timezone

from analysis.models import Run, State
from analysis.runs import services
from analysis.runs.queue.forecast import QueuePosition
from tests.factories import (
    make_card,
    make_claimed_run,
    make_device,
    make_measured_run,
    make_probe,
    make_result,
    make_run,
    make_user,
)
from tests.factories.speeds import make_bound_result, make_timed_result, make_unmeasurable_result

pytestmark = pytest.mark.django_db

JSON = "application/json"


def patch(client: Client, run: Run, body: object, **headers: str):
    return client.patch(f"/api/v1/runs/{run.pk}/", json.dumps(body), content_type=JSON, headers=headers)


@pytest.fixture
def mine(alice) -> Run:
    return make_run(requested_by=alice)


@pytest.fixture
def others(db) -> Run:
    return make_run(requested_by=make_user("bob"))


def test_runs_are_listed_newest_first_in_pages_that_stay_put(alice_client):
    device = make_device()
    runs = [make_run(device) for _ in range(3)]
    first = alice_client.get("/api/v1/runs/?limit=2").json()
    make_run(device)
    second = alice_client.get(first["next"]).json()
    assert [run["id"] for run in first["results"]] == [runs[2].pk, runs[1].pk]
    assert [run["id"] for run in second["results"]] == [runs[0].pk]
    assert (first["previous"], second["next"]) == (None, None)


def test_the_page_before_leads_back(alice_client):
    device = make_device()
    runs = [make_run(device) for _ in range(5)]
    second = alice_client.get(f"/api/v1/runs/?sort=created&limit=2&after={runs[1].pk}").json()
    first = alice_client.get(second["previous"]).json()
    assert [run["id"] for run in first["results"]] == [runs[0].pk, runs[1].pk]


def test_the_list_takes_the_filters_and_orders_of_the_history(alice_client, alice):
    device = make_device()
    old, new = make_run(device, requested_by=alice), make_run(device, precision="bf16")
    services.run_annotate(run_id=old.pk, by=alice, name="nightly", note="", tags=["ci"])

    def listed(query: str) -> list[int]:
        return [run["id"] for run in alice_client.get(f"/api/v1/runs/?{query}").json()["results"]]

    assert listed("sort=run") == [old.pk, new.pk]
    assert listed("user=alice") == listed("tag=ci") == listed("q=night") == [old.pk]
    assert listed("state=queued&state=failed&precision=bf16") == [new.pk]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("modell=bert", "modell"),
        ("columns=run", "columns"),
        ("limit=501", "limit"),
        ("after=999", "after"),
        ("before=999", "before"),
        ("state=asleep", "state"),
    ],
)
def test_a_parameter_that_is_not_understood_is_named_and_nothing_listed(alice_client, query, parameter):
    answer = alice_client.get(f"/api/v1/runs/?{query}")
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/problem+json")
    assert [error["parameter"] for error in answer.json()["errors"]] == [parameter]


def test_a_list_takes_the_same_queries_however_long(alice_client, alice, django_assert_num_queries):
    device = make_device()
    for _ in range(5):
        run = make_run(device, requested_by=alice)
        services.run_annotate(run_id=run.pk, by=alice, name="", note="", tags=["ci"])
    services.run_finish(
        run_id=run.pk,
        token=services.run_claim(device=device, owner="lab", run_id=run.pk).token,
        result=make_result().to_dict(),
    )
    with django_assert_num_queries(8):  # session, person, two for her rights; filter, numbers, rows, tags
        body = alice_client.get("/api/v1/runs/?state=finished").json()
    with django_assert_num_queries(14):  # no filter, and the forecast of those that wait
        alice_client.get("/api/v1/runs/?limit=5")
    assert (body["results"][0]["device"], body["results"][0]["tags"]) == ("cpu", ["ci"])
    assert not {"result", "note", "error_message"} & body["results"][0].keys()


def test_a_run_is_shown_with_its_probes_and_its_result(alice_client):
    run = make_claimed_run()
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(8), sequence=1)
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    body = alice_client.get(f"/api/v1/runs/{run.pk}/").json()
    assert (body["state"], body["largest_batch_size"], body["spec"]["model"]) == ("finished", 8, "bert-tiny")
    assert [(m["batch_size"], m["peak_allocated_bytes"]) for m in body["measurements"]] == [(8, 800 * 1024**2)]
    assert body["result"]["boundary"]["certified"] is True


def test_a_run_carries_the_interval_of_its_speed_up(alice_client):
    run = make_claimed_run()
    services.run_finish(run_id=run.pk, token=run.token, result=make_unmeasurable_result().to_dict())
    told = alice_client.get(f"/api/v1/runs/{run.pk}/").json()
    assert (told["is_speed_measurable"], told["speedup"], told["speedup_low"]) == (False, None, None)
    assert (told["recommended_batch_size"], told["result"]["speed"]["recommended_by"]) == (None, "nothing")
    run = make_claimed_run(make_device("third"))
    services.run_finish(run_id=run.pk, token=run.token, result=make_bound_result().to_dict())
    told = alice_client.get(f"/api/v1/runs/{run.pk}/").json()
    assert (told["is_speed_measurable"], told["speedup"], told["speedup_low"]) == (False, None, 2.0)
    assert (told["saving_per_year_usd"], told["saving_per_year_usd_low"]) == (None, pytest.approx(60.0))
    run = make_claimed_run(make_device("other"))
    services.run_finish(run_id=run.pk, token=run.token, result=make_timed_result().to_dict())
    told = alice_client.get(f"/api/v1/runs/{run.pk}/").json()
    assert (told["is_speed_measurable"], told["speedup_low"], told["speedup_high"]) == (True, 1.36, 1.42)
    assert told["saving_per_year_usd_low"] < told["saving_per_year_usd"]


def test_one_run_takes_few_queries(alice_client, django_assert_num_queries):
    run = make_measured_run()
    with django_assert_num_queries(10):  # four for the person; run, tags, probes' count; result, attempts, probes
        body = alice_client.get(f"/api/v1/runs/{run.pk}/")
    with django_assert_num_queries(7):
        answer = alice_client.get(f"/api/v1/runs/{run.pk}/", headers={"If-None-Match": body.headers["ETag"]})
    assert answer.status_code == 304


def test_a_waiting_run_takes_the_same_queries_however_many_wait(alice_client, alice, mine, django_assert_num_queries):
    for waiting in (1, 5):
        for _ in range(waiting):
            make_run(mine.requested_device, requested_by=alice)
        with django_assert_num_queries(13):  # four for the person; run, tags; seven for the forecast
            alice_client.get(f"/api/v1/runs/{mine.pk}/")


def test_neither_token_nor_owner_of_a_run_is_shown(alice_client):
    run = make_claimed_run()
    assert run.token not in alice_client.get(f"/api/v1/runs/{run.pk}/").content.decode()


def test_a_run_is_stored_and_its_address_given(alice_client, alice):
    make_device()
    answer = alice_client.post("/api/v1/runs/", {"model": "bert-tiny"}, content_type=JSON)
    run = Run.objects.get()
    assert (answer.status_code, answer.json()["id"], run.requested_by) == (202, run.pk, alice)
    assert answer.headers["Location"] == f"http://testserver/api/v1/runs/{run.pk}/"
    assert answer.headers["Retry-After"] == "2"


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        ({}, "/model", "model: is required; one of bert, "),
        ({"model": "bert", "mode": "sleep"}, "/mode", "mode: 'sleep' is not offered; one of train, eval"),
        ({"model": "bert", "colour": 1}, "/colour", "colour: unknown key; allowed are model, "),
        ({"model": "bert", "a/b~": 1}, "/a~1b~0", "a/b~: unknown key"),
        ({"model": "bert", "kind": "dream"}, "/kind", "kind: must be one of"),
    ],
)
def test_a_spec_that_is_not_allowed_is_refused_by_field(alice_client, body, pointer, message):
    make_device()
    answer = alice_client.post("/api/v1/runs/", body, content_type=JSON)
    [error] = answer.json()["errors"]
    assert (answer.status_code, error["pointer"]) == (400, pointer)
    assert answer.json()["detail"].startswith(message)
    assert not Run.objects.exists()


def test_a_waiting_run_tells_its_turn(alice_client):
    card = make_card()
    make_run(card)
    body = {"model": "bert-tiny", "device_class": "A100", "priority": -1, "accepts_shared_device": True}
    answer = alice_client.post("/api/v1/runs/", body, content_type=JSON).json()
    asked = {
        name: answer[name] for name in ("requested_kind", "requested_device_class", "priority", "accepts_shared_device")
    }
    assert asked == {
        "requested_kind": "cuda",
        "requested_device_class": "A100",
        "priority": -1,
        "accepts_shared_device": True,
    }
    turn = [answer[name] for name in ("device", "host", "queue_position", "expected_start_at")]
    assert turn == [None, None, 2, None]
    assert alice_client.get("/api/v1/runs/").json()["results"][0]["queue_position"] == 2


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"device_class": "H100"}, "device_class: no enabled device is called H100"),
        ({"device_class": 7}, "device_class: must be text"),
        ({"priority": "high"}, "priority: must be a whole number"),
        ({"priority": True}, "priority: must be a whole number"),
        ({"priority": 1}, "priority: high is for GPU managers"),
        ({"accepts_shared_device": 1}, "accepts_shared_device: must be true or false"),
    ],
)
def test_a_wrong_place_in_the_queue_names_its_field(alice_client, values, expected):
    make_card()
    answer = alice_client.post("/api/v1/runs/", {"model": "bert-tiny", **values}, content_type=JSON)
    assert answer.status_code == 400
    assert expected in answer.json()["detail"]


def test_an_unchanged_run_is_not_sent_again(alice_client, mine):
    etag = alice_client.get(f"/api/v1/runs/{mine.pk}/").headers["ETag"]
    answer = alice_client.get(f"/api/v1/runs/{mine.pk}/", headers={"If-None-Match": f'"other", W/{etag}'})
    assert (answer.status_code, answer.content, answer.headers["Retry-After"]) == (304, b"", "2")
    services.runs_cancel(run_ids=[mine.pk])
    answer = alice_client.get(f"/api/v1/runs/{mine.pk}/", headers={"If-None-Match": etag})
    assert (answer.status_code, "Retry-After" in answer.headers) == (200, False)


def test_what_the_queue_forecasts_is_no_part_of_the_etag(alice_client, mine, monkeypatch):
    path = f"/api/v1/runs/{mine.pk}/"
    etag = alice_client.get(path).headers["ETag"]
    monkeypatch.setattr(
        "analysis.api.v1.run.runs.queue_positions", lambda runs: {mine.pk: QueuePosition(7, timezone.now())}
    )
    changed = alice_client.get(path)
    assert (changed.json()["queue_position"], changed.headers["ETag"]) == (7, etag)
    assert alice_client.get(path, headers={"If-None-Match": etag}).status_code == 304
    assert patch(alice_client, mine, {"name": "first"}, if_match=etag).status_code == 200


def test_a_heartbeat_changes_no_etag_and_a_probe_does(alice_client):
    run = make_claimed_run()
    services.run_heartbeat(run_id=run.pk, token=run.token, phase="search")

    def etag() -> str:
        return alice_client.get(f"/api/v1/runs/{run.pk}/").headers["ETag"]

    first = etag()
    services.run_heartbeat(run_id=run.pk, token=run.token, phase="search")
    assert etag() == first
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(8), sequence=1)
    assert etag() != first


def test_head_answers_the_headers_alone(alice_client, mine):
    whole = alice_client.get(f"/api/v1/runs/{mine.pk}/")
    answer = alice_client.head(f"/api/v1/runs/{mine.pk}/")
    assert (answer.status_code, answer.content, answer.headers["ETag"]) == (200, b"", whole.headers["ETag"])


def test_name_note_and_tags_are_changed_and_what_is_left_out_stays(alice_client, mine):
    patch(alice_client, mine, {"name": "nightly", "note": "n", "tags": ["ci", "a100"]})
    answer = patch(alice_client, mine, {"note": ""})
    body = answer.json()
    assert (answer.status_code, body["name"], body["note"], body["tags"]) == (200, "nightly", "", ["a100", "ci"])
    assert answer.headers["ETag"] == alice_client.get(f"/api/v1/runs/{mine.pk}/").headers["ETag"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"state": "finished"}, "/state"),
        ({"name": 7}, "/name"),
        ({"name": "x" * 121}, "/name"),
        ({"note": None}, "/note"),
        ({"tags": "ci"}, "/tags"),
        ({"tags": ["CI!"]}, "/tags"),
        ({"tags": ["a", 1]}, "/tags/1"),
        ({"is_baseline": "yes"}, "/is_baseline"),
    ],
)
def test_what_cannot_be_written_on_a_run_is_refused_and_named(alice_client, mine, body, pointer):
    answer = patch(alice_client, mine, body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer)
    mine.refresh_from_db()
    assert (mine.name, mine.state) == ("", State.QUEUED)


def test_a_change_of_what_has_changed_meanwhile_is_refused(alice_client, mine):
    etag = alice_client.get(f"/api/v1/runs/{mine.pk}/").headers["ETag"]
    assert patch(alice_client, mine, {"name": "first"}, if_match=etag).status_code == 200
    late = patch(alice_client, mine, {"name": "second"}, if_match=etag)
    assert (late.status_code, late.json()["code"]) == (412, "changed")
    assert patch(alice_client, mine, {"name": "third"}, if_match=late.headers["ETag"]).json()["name"] == "third"


def test_another_persons_run_is_read_and_not_changed(alice_client, others):
    assert alice_client.get(f"/api/v1/runs/{others.pk}/").status_code == 200
    answers = [patch(alice_client, others, body) for body in ({"name": "mine"}, {"is_baseline": False}, {})]
    answers.append(alice_client.delete(f"/api/v1/runs/{others.pk}/"))
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "not_yours")] * 4


def test_a_finished_measurement_becomes_a_baseline_and_a_waiting_one_does_not(root_client, mine):
    answer = patch(root_client, mine, {"name": "kept", "is_baseline": True})
    assert (answer.status_code, answer.json()["code"]) == (409, "state")
    mine.refresh_from_db()
    assert mine.name == ""  # all of it, or nothing
    run = make_measured_run(make_device("other"))
    assert patch(root_client, run, {"is_baseline": True}).json()["is_baseline"] is True


def test_a_run_that_is_over_is_deleted_and_one_that_goes_on_is_not(alice_client, mine):
    refused = alice_client.delete(f"/api/v1/runs/{mine.pk}/")
    assert (refused.status_code, refused.json()["detail"]) == (409, "Not done: not over yet or a baseline.")
    services.runs_cancel(run_ids=[mine.pk])
    assert alice_client.delete(f"/api/v1/runs/{mine.pk}/").status_code == 204
    assert alice_client.get(f"/api/v1/runs/{mine.pk}/").status_code == 404
    assert Run.all_runs.get(pk=mine.pk).deleted_at is not None


def test_an_export_holds_exactly_what_is_asked_for(alice_client):
    device = make_device()
    run, _ = make_run(device, precision="bf16"), make_run(device)
    text = b"".join(alice_client.get("/api/v1/runs/export.csv?precision=bf16").streaming_content).decode()
    rows = json.loads(b"".join(alice_client.get("/api/v1/runs/export.json?precision=bf16").streaming_content))
    assert text.splitlines()[1].startswith(f"{run.pk},measurement")
    assert [row["id"] for row in rows] == [run.pk]


def test_an_export_is_answered_whatever_the_client_accepts_and_refuses_a_wrong_filter(alice_client):
    answer = alice_client.get("/api/v1/runs/export.csv", headers={"Accept": "text/csv"})
    assert answer.headers["Content-Disposition"] == 'attachment; filename="memorymark-runs.csv"'
    assert alice_client.get("/api/v1/runs/export.csv?limit=3").status_code == 400


def test_the_index_names_the_lists(alice_client):
    body = alice_client.get("/api/v1/").json()
    assert body["links"]["runs"] == "http://testserver/api/v1/runs/"
    assert all(alice_client.get(address).status_code in (200, 400, 403, 405) for address in body["links"].values())
