"""Estimates through version 1 of the API; the classic endpoint knows nothing of them."""

import pytest

from analysis.models import Run
from analysis.runs import services
from engine.estimate.gpus import gpus
from tests.factories import make_claimed_estimate, make_device
from tests.fake_engine import estimate_of

pytestmark = pytest.mark.django_db

PATH = "/api/v1/runs/"


def post(client, **body):
    return client.post(PATH, body, content_type="application/json")


def test_an_estimate_is_stored_and_its_address_told(alice_client, alice):
    response = post(alice_client, model="bert", kind="estimate", gpu="a100-40gb", precision="bf16")
    run = Run.objects.get()
    assert (response.status_code, response["Location"]) == (202, f"http://testserver{PATH}{run.pk}/")
    assert (run.kind, run.gpu, run.precision, run.requested_by) == ("estimate", "a100-40gb", "bf16", alice)
    assert response.json()["kind"] == "estimate"


def test_without_a_card_it_is_for_all(alice_client):
    post(alice_client, model="bert", kind="estimate")
    assert Run.objects.get().gpu == "all"


def test_an_unknown_card_is_refused_with_its_field_and_the_nearest_names(alice_client):
    response = post(alice_client, model="bert", kind="estimate", gpu="a100-40")
    assert response.status_code == 400
    assert response.json()["detail"].startswith("gpu: ")
    assert "a100-40gb" in response.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "guess"}, "kind"),
        ({"kind": 1}, "kind"),
        ({"kind": "estimate", "gpu": 4}, "gpu"),
        ({"kind": "estimate", "device": "cuda:0"}, "device"),
        ({"kind": "estimate", "device_class": "A100"}, "device_class"),
        ({"kind": "estimate", "accepts_shared_device": True}, "accepts_shared_device"),
        ({"kind": "estimate", "time_budget_seconds": 60}, "time_budget_seconds"),
        ({"kind": "estimate", "precision": "int8"}, "precision"),
        ({"kind": "estimate", "gpu": "t4", "memory_limit_bytes": "24GiB"}, "memory_limit_bytes"),
        ({"kind": "estimate", "gpu": "a10", "frontier": "128,256"}, "frontier"),
        ({"kind": "estimate", "frontier": [128, 256]}, "frontier"),
        ({"frontier": [128, 256]}, "frontier"),
        ({"kind": "measurement", "gpu": "a10"}, "gpu"),
        ({"gpu": "a10"}, "gpu"),
    ],
)
def test_an_invalid_combination_is_refused_with_its_field(alice_client, body, field):
    make_device()
    response = post(alice_client, model="bert", **body)
    assert response.status_code == 400
    assert response.json()["detail"].startswith(f"{field}: ")
    assert not Run.objects.exists()


def test_its_result_holds_the_estimates_and_no_measured_figure(alice_client):
    run = make_claimed_estimate("a10")
    result = {"estimates": [estimate_of(run.run_spec, gpus()["a10"])]}
    services.run_finish(run_id=run.pk, token=run.token, result=result)
    body = alice_client.get(f"{PATH}{run.pk}/").json()
    assert (body["largest_batch_size"], body["estimated_largest_batch_size"]) == (None, 99)
    assert body["result"]["estimates"][0]["gpu"]["id"] == "a10"
    assert (body["attempts"][0]["device"], body["measurements"]) == (None, [])


def test_the_classic_endpoint_refuses_the_words_of_estimates(alice_client):
    for name, value in (("kind", "estimate"), ("gpu", "a10")):
        response = alice_client.post("/analyze", {"model_name": "bert", name: value}, content_type="application/json")
        assert response.status_code == 400
        assert response.json()["error"].startswith(f"{name}: unknown key")
