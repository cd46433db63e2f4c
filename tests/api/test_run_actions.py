"""Version 1: runs are cancelled, repeated, cloned and restored."""

import json

import pytest

from analysis.models import Device, Run
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from engine.faster.spec import FasterSpec
from tests.factories import (
    make_card,
    make_claimed_run,
    make_device,
    make_estimate,
    make_measured_run,
    make_run,
)

pytestmark = pytest.mark.django_db

JSON = "application/json"


@pytest.fixture
def mine(alice) -> Run:
    return make_run(requested_by=alice, precision="bf16", current_batch_size=32)


@pytest.fixture
def act(alice_client):
    def send(run: Run, action: str, body: object = None, **headers: str):
        text = "" if body is None else json.dumps(body)
        return alice_client.post(f"/api/v1/runs/{run.pk}/{action}/", text, content_type=JSON, headers=headers)

    return send


def test_a_waiting_run_is_cancelled_and_a_second_time_changes_nothing(act, mine):
    answers = [act(mine, "cancel"), act(mine, "cancel")]
    assert [(answer.status_code, answer.json()["state"]) for answer in answers] == [
        (202, "cancelled"),
        (200, "cancelled"),
    ]
    assert answers[0].json()["finished_at"] == answers[1].json()["finished_at"]


def test_a_running_run_is_asked_to_stop(root_client):
    run = make_claimed_run()
    answer = root_client.post(f"/api/v1/runs/{run.pk}/cancel/", content_type=JSON)
    assert (answer.status_code, answer.json()["state"], answer.json()["cancel_requested"]) == (202, "running", True)
    assert answer.headers["Retry-After"] == "2"


@pytest.mark.parametrize("action", ["cancel", "retry", "restore"])
def test_what_is_sent_along_for_nothing_is_refused(act, mine, action):
    services.runs_cancel(run_ids=[mine.pk])
    assert act(mine, action, {"precision": "fp16"}).status_code == 400


def test_a_run_that_is_over_is_repeated_by_whoever_asks(act, alice):
    run = make_measured_run()
    answer = act(run, "retry")
    again = Run.objects.get(pk=answer.json()["id"])
    assert (answer.status_code, again.requested_by, again.spec["model"]) == (202, alice, run.spec["model"])
    assert answer.headers["Location"].endswith(f"/api/v1/runs/{again.pk}/")


def test_a_run_that_goes_on_is_not_repeated(act, mine):
    answer = act(mine, "retry")
    assert (answer.status_code, answer.json()["code"]) == (409, "state")
    assert Run.objects.count() == 1


def test_a_clone_is_the_same_but_for_what_is_changed(act, mine):
    answer = act(mine, "clone", {"precision": "fp16"})
    clone = Run.objects.get(pk=answer.json()["id"])
    assert (answer.status_code, clone.spec) == (202, {**mine.spec, "precision": "fp16"})
    assert (clone.requested_device, clone.uses_device_price) == (mine.requested_device, mine.uses_device_price)


def test_a_clone_keeps_the_very_device_unless_another_is_named(act, alice):
    first, second = make_card(0, "lab"), make_card(0, "annex", capacity_bytes=2 * 1024**3)
    run = make_run(second, requested_by=alice)
    assert Run.objects.get(pk=act(run, "clone", {}).json()["id"]).requested_device == second
    assert Run.objects.get(pk=act(run, "clone", {"device": "cuda:0"}).json()["id"]).requested_device == first


def test_a_clone_of_a_run_with_the_devices_price_has_that_price_again(act, alice, alice_client):
    Device.objects.filter(pk=make_device().pk).update(price_per_hour_usd=3.5)
    first = alice_client.post("/api/v1/runs/", {"model": "bert-tiny"}, content_type=JSON).json()["id"]
    clones = [act(Run(pk=first), "clone", body).json()["id"] for body in ({}, {"price_per_hour_usd": 1})]
    assert [Run.objects.get(pk=pk).uses_device_price for pk in clones] == [True, False]


def test_a_clone_of_an_estimate_keeps_its_price(act):
    estimate = make_estimate(price_per_hour_usd=7.0)
    clone = act(estimate, "clone", {"optimizer": "sgd"}).json()
    assert (clone["spec"]["price_per_hour_usd"], clone["gpu"]) == (7.0, estimate.gpu)


def test_an_estimate_is_measured_by_a_clone_and_a_measurement_estimated(act, mine):
    estimate = make_estimate()
    measured = act(estimate, "clone", {"kind": "measurement"}).json()
    estimated = act(mine, "clone", {"kind": "estimate", "gpu": "a10"}).json()
    assert (measured["kind"], measured["requested_device"], measured["spec"]["time_budget_seconds"]) == (
        "measurement",
        None,
        1800,
    )
    assert (estimated["kind"], estimated["gpu"], estimated["precision"]) == ("estimate", "a10", "bf16")


@pytest.mark.parametrize("kind", ["race", "measurement", "estimate"])
def test_a_race_is_cloned_as_any_kind_with_its_own_price(act, alice, kind):
    spec = FasterSpec(model="bert-tiny", tried="fused", price_per_hour_usd=7.0)
    own = {"accepts_shared_device": True, "uses_device_price": False}
    race = services.run_create(spec=spec, place=Placement(device=make_device()), requested_by=alice, **own)
    answer = act(race, "clone", {"kind": kind})
    assert answer.status_code == 202, answer.content
    clone = Run.objects.get(pk=answer.json()["id"])
    assert (clone.kind, clone.spec["price_per_hour_usd"]) == (kind, 7.0)
    assert clone.spec.get("tried") == ("fused" if kind == "race" else None)
    if kind != "estimate":
        assert (clone.accepts_shared_device, clone.uses_device_price) == (True, False)
        assert clone.requested_device == race.requested_device


def test_a_measurement_that_is_raced_keeps_its_own_price_and_an_estimate_has_that_of_the_device(act, alice):
    Device.objects.filter(pk=make_device().pk).update(price_per_hour_usd=3.5)
    measured = make_run(Device.objects.get(), requested_by=alice, price_per_hour_usd=7.0)
    Run.objects.filter(pk=measured.pk).update(uses_device_price=False)
    raced = act(measured, "clone", {"kind": "race"}).json()
    assert (raced["kind"], raced["spec"]["price_per_hour_usd"]) == ("race", 7.0)
    race_of_estimate = act(make_estimate(price_per_hour_usd=7.0), "clone", {"kind": "race"}).json()
    assert race_of_estimate["kind"] == "race"
    assert Run.objects.get(pk=race_of_estimate["id"]).uses_device_price


def test_a_change_that_is_not_allowed_is_named_and_nothing_cloned(act, mine):
    answer = act(mine, "clone", {"mode": "sleep"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/mode")
    assert Run.objects.count() == 1


def test_a_deleted_run_comes_back(act, mine, alice):
    services.runs_cancel(run_ids=[mine.pk])
    services.runs_delete(run_ids={mine.pk}, by=alice)
    assert (act(mine, "restore").status_code, Run.objects.filter(pk=mine.pk).exists()) == (200, True)
    assert act(mine, "restore").status_code == 409
