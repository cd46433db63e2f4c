"""The largest length, rank or model that fits: in the form, in the API, and on the page of an estimate."""

from typing import Any

import pytest
from django.test import Client

from analysis.models import Run
from analysis.runs import services
from analysis.runs.kinds.estimate import CHANGES_SECONDS, TIME_BUDGET_SECONDS
from engine.estimate.gpus import find
from engine.estimate.largest import LargestOf, largest_of
from engine.text.units import GIB, MIB
from tests.factories import make_claimed_estimate, make_estimate
from tests.factories.pages import estimate_form, page, words
from tests.fake_engine import estimate_of

pytestmark = pytest.mark.django_db


def answered() -> Run:
    """A finished estimate of the longest text at batch 16 on an A10."""
    run = make_claimed_estimate("a10", largest="sequence_length")
    found = largest_of(
        run.run_spec,
        LargestOf.SEQUENCE_LENGTH,
        16,
        lambda spec: GIB + spec.input_size * 64 * MIB,
        limit_bytes=22 * GIB,
        margin_fraction=0.1,
    )
    result = {"estimates": [estimate_of(run.run_spec, find("a10"))], "largest": found.to_dict()}
    services.run_finish(run_id=run.pk, token=run.token, result=result)
    run.refresh_from_db()
    return run


def test_the_answer_is_the_title_and_everything_tried_is_below(alice_client: Client) -> None:
    html = page(alice_client, answered())
    answer = "At batch 16, 304 tokens fit with the margin of 10.0 %; 320 would not."
    assert f"<h1>{answer}</h1>" in html
    assert words(html).count(answer) >= 2
    assert "320 tokens" in words(html)
    assert "fits, but not with the margin" in words(html)


def test_the_form_stores_what_is_searched_and_a_copy_begins_with_it(alice_client: Client) -> None:
    assert alice_client.post("/runs/new/", estimate_form(largest="sequence_length")).status_code == 302
    run = Run.objects.get()
    assert (run.spec["largest"], run.spec["current_batch_size"]) == ("sequence_length", 16)
    copied = alice_client.get(f"/?clone={run.pk}", headers={"accept": "text/html"}).content.decode()
    assert '<option value="sequence_length" selected>' in copied


def test_the_page_of_estimates_leads_to_the_form_with_the_question(alice_client: Client) -> None:
    address = "/?kind=estimate&amp;largest=sequence_length"
    assert address in alice_client.get("/estimates/").content.decode()
    begun = alice_client.get(address.replace("&amp;", "&"), headers={"accept": "text/html"})
    assert begun.context["form"]["largest"].value() == "sequence_length"
    assert begun.context["form"].more_is_open


def test_what_cannot_be_searched_is_refused_at_its_field(alice_client: Client) -> None:
    response = alice_client.post("/runs/new/", estimate_form(largest="lora_rank"))
    assert response.status_code == 422
    assert list(response.context["form"].errors) == ["largest"]
    assert not Run.objects.exists()


def test_the_api_names_what_it_refuses(alice_client: Client) -> None:
    body = {"model": "resnet", "gpu": "a10", "largest": "sequence_length"}
    answer = alice_client.post("/api/v1/estimates/", body, content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/largest")
    assert "it takes image_size" in answer.json()["detail"]


@pytest.mark.parametrize("asked", [{"largest": "model"}, {"frontier": [64, 128]}])
def test_several_estimates_in_one_have_more_time_than_one(asked: dict[str, Any]) -> None:
    assert TIME_BUDGET_SECONDS < make_estimate("a10", **asked).spec["time_budget_seconds"] <= CHANGES_SECONDS
