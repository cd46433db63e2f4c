"""Measuring what an estimate found to change, through the API."""

import pytest

from analysis.models import Run
from tests.factories import make_device
from tests.runs.test_what_to_change import BF16, answered

pytestmark = pytest.mark.django_db


def post(client, run, **body):
    return client.post(f"/api/v1/runs/{run.pk}/measure-changes/", body, content_type="application/json")


def test_each_variant_becomes_a_run(alice_client, alice):
    make_device()
    response = post(alice_client, answered(), variants=["as requested", BF16])
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
    response = post(alice_client, answered(), **body)
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
