"""Version 1: the pieces of a run, one address each; runs are cancelled, repeated, cloned and restored."""

import json

import pytest

from analysis.models import Device, Run
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from analysis.runs.services import LogLine
from engine.facts.result import Purpose
from engine.questions.faster.spec import FasterSpec
from tests.factories import (
    make_card,
    make_claimed_run,
    make_device,
    make_estimate,
    make_measured_run,
    make_probe,
    make_refusal,
    make_result,
    make_run,
)
from tests.factories.estimates import estimate_of_card, estimated_at
from tests.factories.reports import HOST, make_reported_run

pytestmark = pytest.mark.django_db

HERE = {"origin": None, "reported_from": "", "is_trusted": True}
"""The members of a run that this portal measured."""


@pytest.fixture
def part(alice_client):
    return lambda run, address, status=200: _json(alice_client.get(f"/api/v1/runs/{run.pk}/{address}"), status)


def _json(answer, status):
    assert answer.status_code == status, answer.content
    return answer.json()


def say(run: Run, *messages: str, first: int = 1) -> None:
    lines = [LogLine("info", message) for message in messages]
    services.log_add(run_id=run.pk, token=run.token, lines=lines, first_sequence=first)


def tried_twice() -> Run:
    """The first attempt lost its host; the second one goes on."""
    run = make_claimed_run()
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(2), sequence=1)
    say(run, "one", "two")
    services.run_fail(run_id=run.pk, token=run.token, code="host_lost", message="gone")
    run = services.run_claim(device=run.requested_device, owner="tester", run_id=run.pk)
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(4), sequence=1)
    say(run, "three")
    return run


def certified() -> Run:
    run = make_claimed_run()
    probes = (
        make_probe(4),
        make_probe(8),
        make_probe(8, purpose=Purpose.SOAK, steps=50, step_seconds=9.0),
        make_refusal(9),
    )
    for sequence, probe in enumerate(probes, start=1):
        services.measurement_add(run_id=run.pk, token=run.token, probe=probe, sequence=sequence)
    services.run_finish(run_id=run.pk, token=run.token, result=make_result(probes=probes).to_dict())
    return Run.objects.get(pk=run.pk)


def test_measurements_are_those_of_the_last_attempt_or_of_the_one_that_is_named(part):
    run = tried_twice()
    sizes = [
        [row["batch_size"] for row in part(run, f"measurements/{query}")["results"]] for query in ("", "?attempt=1")
    ]
    assert sizes == [[4], [2]]


def test_a_wrong_attempt_is_refused_and_one_without_probes_is_empty(part):
    run = make_run()
    assert part(run, "measurements/?attempt=0", 400)["errors"][0]["parameter"] == "attempt"
    assert part(run, "measurements/")["results"] == []


def test_the_attempts_of_a_run_are_shown(part):
    run = make_claimed_run()
    services.run_fail(run_id=run.pk, token=run.token, code="workload_failed", message="the loss", exit_status=1)
    [attempt] = part(run, "attempts/")["results"]
    told = {name: attempt[name] for name in ("number", "device", "host", "cause", "message")}
    assert told == {"number": 1, "device": "cpu", "host": "lab", "cause": "workload_failed", "message": "the loss"}


def test_events_go_on_over_attempts_where_the_last_one_was_read(part):
    run = tried_twice()
    first = part(run, "events/?limit=2")
    rest = part(run, f"events/?after={first['last_sequence']}")
    assert [(event["attempt"], event["message"]) for event in first["events"]] == [(1, "one"), (1, "two")]
    assert [(event["attempt"], event["message"]) for event in rest["events"]] == [(2, "three")]
    nothing = part(run, f"events/?after={rest['last_sequence']}")
    assert (nothing["events"], nothing["last_sequence"]) == ([], rest["last_sequence"])


def test_events_tell_when_a_run_is_over(part, alice_client):
    run = make_run()
    assert part(run, "events/")["is_over"] is False
    assert alice_client.get(f"/api/v1/runs/{run.pk}/events/").headers["Retry-After"] == "2"
    services.runs_cancel(run_ids=[run.pk])
    body = part(run, "events/?after=7")
    assert (body["is_over"], body["state"], body["last_sequence"]) == (True, "cancelled", 0)


def test_events_take_few_queries_however_many(alice_client, django_assert_num_queries):
    run = make_claimed_run()
    say(run, *map(str, range(100)))
    with django_assert_num_queries(6):  # four for the person, the run, its lines
        body = alice_client.get(f"/api/v1/runs/{run.pk}/events/").json()
    assert len(body["events"]) == 100


def test_points_have_one_for_each_size_with_the_refused_one_and_not_the_soaks(part):
    body = part(certified(), "points/")
    [curve] = body["curves"]
    points = [(point["batch_size"], point["outcome"], point["step_seconds"]) for point in curve["points"]]
    assert points == [(4, "fits", 0.5), (8, "fits", 0.5), (9, "out_of_memory", None)]
    assert (body["evidence"], curve["gpu"], curve["limit_bytes"]) == ("measured", "Test CPU", 1024**3)


def test_an_estimates_points_are_called_estimated_and_have_a_curve_for_each_card(part):
    run = make_estimate()
    assert part(run, "points/") == {"run": run.pk, **HERE, "evidence": "estimated", "curves": []}
    at = [estimated_at(size, fits=size == 8, allocated_bytes=size * 100) for size in (8, 9)]
    card = estimate_of_card({"id": "a10", "name": "NVIDIA A10", "total_bytes": 24 * 1024**3}, 8, 7, at=at)
    Run.objects.filter(pk=run.pk).update(state="finished", result={"estimates": [card, card]})
    first, _ = part(run, "points/")["curves"]
    assert [(point["batch_size"], point["outcome"]) for point in first["points"]] == [(8, "fits"), (9, "out_of_memory")]
    assert (first["gpu"], first["points"][0]["step_seconds"]) == ("NVIDIA A10", None)


def test_the_result_has_the_origin_of_its_run_whatever_it_claims_itself(part, alice):
    run = make_reported_run(alice, is_trusted=True, reported_from="", origin=None)
    found = {"origin": f"reported by alice from {HOST}", "reported_from": HOST, "is_trusted": False}
    answer = part(run, "result/")
    assert {name: answer[name] for name in found} == found
    assert not found.keys() & run.result.keys()


def test_the_result_is_the_engines_and_a_run_without_one_says_how_it_stands(part):
    assert part(make_measured_run(), "result/")["boundary"]["largest_batch_size"] == 8
    problem = part(make_run(make_device("other")), "result/", 404)
    assert (problem["code"], problem["detail"].split(":")[0][-9:]) == ("no_result", "is queued")


def test_the_certificate_is_n_with_its_steps_and_n_plus_one_with_its_error(part):
    body = part(certified(), "certificate/")
    assert (body["certified"], body["largest_batch_size"], body["refused_batch_size"]) == (True, 8, 9)
    assert [(probe["purpose"], probe["steps"]) for probe in body["fits"]] == [("search", 3), ("soak", 50)]
    assert (body["refusal"], body["refused"][0]["error_message"]) == ("over the limit", "over the limit")


@pytest.mark.parametrize(("make", "code"), [(make_run, "no_result"), (make_estimate, "no_certificate")])
def test_there_is_no_certificate_without_a_proof(part, make, code):
    assert part(make(), "certificate/", 404)["code"] == code


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
