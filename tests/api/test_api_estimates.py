"""Estimates are runs, by an address of their own or by that of runs; what they found to change is measured."""

from typing import Any

import pytest
from django.test import Client

from analysis.models import Run
from analysis.runs import services
from engine.estimate.gpus import gpus
from tests.factories import make_claimed_estimate, make_device, make_estimate, make_run
from tests.fake_engine import estimate_of
from tests.runs.test_validations import BF16, answered

pytestmark = pytest.mark.django_db

PATH = "/api/v1/estimates/"


def post(client: Client, body: Any, **headers: str) -> Any:
    return client.post(PATH, body, content_type="application/json", headers=headers)


def test_an_estimate_is_stored_without_saying_the_kind(alice_client: Client) -> None:
    answer = post(alice_client, {"model": "bert", "gpu": "a10"})
    run = Run.objects.get()
    assert (answer.status_code, run.kind, run.gpu) == (202, "estimate", "a10")
    assert answer.headers["Location"] == f"http://testserver/api/v1/runs/{run.pk}/"


def test_an_estimate_of_several_lengths_keeps_them_in_order(alice_client: Client) -> None:
    answer = post(alice_client, {"model": "bert", "gpu": "a10", "frontier": [512, 128, 256]})
    assert (answer.status_code, Run.objects.get().spec["frontier"]) == (202, [128, 256, 512])


def test_a_copy_has_the_lengths_of_the_estimate(alice_client: Client) -> None:
    run = make_estimate("a10", frontier=[64, 128])
    answer = alice_client.post(f"/api/v1/runs/{run.pk}/clone/", {"precision": "bf16"}, content_type="application/json")
    assert (answer.status_code, Run.objects.get(precision="bf16").spec["frontier"]) == (202, [64, 128])


def test_only_estimates_are_listed(alice_client: Client) -> None:
    make_run()
    estimates = [make_estimate("a10"), make_estimate("a10", precision="bf16")]
    listed = alice_client.get(PATH).json()["results"]
    assert [run["id"] for run in listed] == [run.pk for run in reversed(estimates)]
    assert len(alice_client.get(PATH, {"precision": "bf16"}).json()["results"]) == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"model": "bert", "kind": "measurement"}, "/kind"),
        ({"model": "bert", "device": "cuda"}, "/device"),
    ],
)
def test_what_is_no_estimate_is_refused_by_its_place(alice_client: Client, body: Any, pointer: str) -> None:
    answer = post(alice_client, body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer)
    assert not Run.objects.exists()


def test_the_kind_is_no_filter_here(alice_client: Client) -> None:
    answer = alice_client.get(PATH, {"kind": "measurement"})
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (400, "kind")


def post_changes(client, run, **body):
    return client.post(f"/api/v1/runs/{run.pk}/measure-changes/", body, content_type="application/json")


def test_each_variant_becomes_a_run(alice_client, alice):
    make_device()
    response = post_changes(alice_client, answered(), variants=["as requested", BF16])
    assert response.status_code == 202
    assert [each["precision"] for each in response.json()["runs"]] == ["fp32", "bf16"]
    assert set(Run.objects.measuring().values_list("requested_by", flat=True)) == {alice.pk}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "variants"),
        ({"variants": []}, "variants"),
        ({"variants": "bf16 precision"}, "variants"),
        ({"variants": [BF16, "nonsense"]}, "variants"),
        ({"variants": [BF16], "device": 1}, "device"),
        ({"variants": [BF16], "device": "cuda:7"}, "device"),
        ({"variants": [BF16], "batch": 4}, "batch"),
    ],
)
def test_a_wrong_body_is_refused_with_its_field_and_starts_nothing(alice_client, body, field):
    make_device()
    response = post_changes(alice_client, answered(), **body)
    assert response.status_code == 400
    assert response.json()["detail"].startswith(f"{field}: ")
    assert not Run.objects.measuring().exists()


def test_an_estimate_may_ask_for_it_of_one_card(alice_client):
    wanted = {"model": "bert", "gpu": "t4", "what_to_change": "single", "current_batch_size": 128}
    assert alice_client.post("/api/v1/estimates/", wanted, content_type="application/json").status_code == 202
    assert Run.objects.get().spec["what_to_change"] == "single"
    for wrong in ({"gpu": "all"}, {"what_to_change": "everything"}, {"what_to_change": 1}):
        refused = alice_client.post("/api/v1/estimates/", {**wanted, **wrong}, content_type="application/json")
        assert refused.status_code == 400
        assert refused.json()["detail"].startswith("what_to_change: ")


RUNS = "/api/v1/runs/"


def post_run(client, **body):
    return client.post(RUNS, body, content_type="application/json")


def test_an_estimate_is_stored_and_its_address_told(alice_client, alice):
    response = post_run(alice_client, model="bert", kind="estimate", gpu="a100-40gb", precision="bf16")
    run = Run.objects.get()
    assert (response.status_code, response["Location"]) == (202, f"http://testserver{RUNS}{run.pk}/")
    assert (run.kind, run.gpu, run.precision, run.requested_by) == ("estimate", "a100-40gb", "bf16", alice)
    assert response.json()["kind"] == "estimate"


def test_without_a_card_it_is_for_all(alice_client):
    post_run(alice_client, model="bert", kind="estimate")
    assert Run.objects.get().gpu == "all"


def test_an_unknown_card_is_refused_with_its_field_and_the_nearest_names(alice_client):
    response = post_run(alice_client, model="bert", kind="estimate", gpu="a100-40")
    assert response.status_code == 400
    assert response.json()["detail"].startswith("gpu: ")
    assert "a100-40gb" in response.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": 1}, "kind"),
        ({"kind": "estimate", "gpu": 4}, "gpu"),
        ({"kind": "estimate", "device": "cuda:0"}, "device"),
        ({"kind": "estimate", "time_budget_seconds": 60}, "time_budget_seconds"),
        ({"kind": "estimate", "gpu": "t4", "memory_limit_bytes": "24GiB"}, "memory_limit_bytes"),
        ({"kind": "estimate", "gpu": "a10", "frontier": "128,256"}, "frontier"),
        ({"kind": "estimate", "frontier": [128, 256]}, "frontier"),
        ({"frontier": [128, 256]}, "frontier"),
        ({"gpu": "a10"}, "gpu"),
    ],
)
def test_an_invalid_combination_is_refused_with_its_field(alice_client, body, field):
    make_device()
    response = post_run(alice_client, model="bert", **body)
    assert response.status_code == 400
    assert response.json()["detail"].startswith(f"{field}: ")
    assert not Run.objects.exists()


def test_its_result_holds_the_estimates_and_no_measured_figure(alice_client):
    run = make_claimed_estimate("a10")
    result = {"estimates": [estimate_of(run.run_spec, gpus()["a10"])]}
    services.run_finish(run_id=run.pk, token=run.token, result=result)
    body = alice_client.get(f"{RUNS}{run.pk}/").json()
    assert (body["largest_batch_size"], body["estimated_largest_batch_size"]) == (None, 99)
    assert body["result"]["estimates"][0]["gpu"]["id"] == "a10"
    assert (body["attempts"][0]["device"], body["measurements"]) == (None, [])


def test_the_classic_endpoint_refuses_the_words_of_estimates(alice_client):
    for name, value in (("kind", "estimate"), ("gpu", "a10")):
        response = alice_client.post("/analyze", {"model_name": "bert", name: value}, content_type="application/json")
        assert response.status_code == 400
        assert response.json()["error"].startswith(f"{name}: unknown key")
