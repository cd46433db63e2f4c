"""The largest length, rank or model that fits, and length x batch: in the form, in the API, and on the page."""

from typing import Any

import pytest
from django.test import Client

from analysis.models import Device, Run
from analysis.runs import services
from analysis.runs.earlier.what_to_change import measured_sizes
from analysis.runs.kinds.estimate import CHANGES_SECONDS, TIME_BUDGET_SECONDS
from engine.estimate.gpus import find
from engine.estimate.largest import LargestOf, largest_of
from engine.text.units import GIB, MIB
from tests.factories import make_card, make_claimed_estimate, make_estimate, make_measured_run
from tests.factories.pages import estimate_form, page, words
from tests.fake_engine import estimate_of
from tests.presentation.test_frontier import stored_frontier

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


def answered_frontier() -> Run:
    """A finished estimate of two lengths on an A10."""
    run = make_claimed_estimate("a10", frontier=[64, 128])
    result = {"estimates": [estimate_of(run.run_spec, find("a10"))], "frontier": stored_frontier(64, 128)}
    services.run_finish(run_id=run.pk, token=run.token, result=result)
    run.refresh_from_db()
    return run


def an_a10() -> Device:
    return make_card(name="NVIDIA A10", capacity_bytes=find("a10").total_bytes)


def test_the_page_has_the_picture_the_budget_and_the_table(alice_client: Client) -> None:
    run = answered_frontier()
    html = page(alice_client, run)
    assert 'data-chart="frontier"' in html
    assert run.result is not None
    assert run.result["frontier"]["text"] in words(html)
    assert "Measured tokens/s" not in words(html)  # no length was measured


def test_an_estimate_without_lengths_has_no_such_part(alice_client: Client) -> None:
    run = make_claimed_estimate("a10")
    result = {"estimates": [estimate_of(run.run_spec, find("a10"))]}
    services.run_finish(run_id=run.pk, token=run.token, result=result)
    assert 'id="frontier"' not in page(alice_client, run)


def test_a_run_of_the_same_training_on_the_card_tells_its_speed(alice_client: Client) -> None:
    card, estimate = an_a10(), answered_frontier()
    same = make_measured_run(card, sequence_length=128, memory_limit_bytes=None)
    make_measured_run(card, sequence_length=64, memory_limit_bytes=None, precision="fp16")
    found = measured_sizes(estimate, None)
    assert {size: each.run_id for size, each in found.items()} == {128: same.pk}
    assert f"run {same.pk}" in words(page(alice_client, estimate))


def test_a_run_on_another_card_is_not_shown() -> None:
    other = make_card(name="NVIDIA H100 80GB HBM3", capacity_bytes=find("h100-80gb").total_bytes)
    make_measured_run(other, sequence_length=128, memory_limit_bytes=None)
    assert measured_sizes(answered_frontier(), None) == {}


def test_the_form_stores_the_lengths(alice_client: Client) -> None:
    response = alice_client.post("/runs/new/", estimate_form(frontier="512, 128,256"))
    assert response.status_code == 302
    assert Run.objects.get().spec["frontier"] == [128, 256, 512]


@pytest.mark.parametrize(
    "values", [{"frontier": "128"}, {"frontier": "128, long"}, {"frontier": "128,256", "gpu": "all"}]
)
def test_lengths_that_cannot_be_estimated_are_refused_at_their_field(
    alice_client: Client, values: dict[str, str]
) -> None:
    response = alice_client.post("/runs/new/", estimate_form(**values))
    assert response.status_code == 422
    assert list(response.context["form"].errors) == ["frontier"]
    assert response.context["form"].more_is_open


def test_a_measurement_does_not_read_the_hidden_field(alice_client: Client) -> None:
    card = an_a10()
    response = alice_client.post(
        "/runs/new/", estimate_form(kind="measurement", device=str(card.pk), frontier="128, long")
    )
    assert (response.status_code, "frontier" in Run.objects.get().spec) == (302, False)


def test_a_copy_starts_with_the_lengths_of_the_estimate(alice_client: Client) -> None:
    run = make_estimate("a10", frontier=[64, 128])
    assert 'value="64, 128"' in alice_client.get(f"/?clone={run.pk}", headers={"accept": "text/html"}).content.decode()


def test_the_page_tells_the_size_that_is_estimated_after_the_card(alice_client: Client) -> None:
    run = make_claimed_estimate("a10", frontier=[64, 128])
    services.run_heartbeat(run_id=run.pk, token=run.token, phase="predicting")
    progress = {"phases": {"tracing": 0.0, "predicting": 3.0}, "cards": 1, "cards_done": 1, "stage": "size 2 of 2: 128"}
    services.attempt_set(run_id=run.pk, token=run.token, progress=progress)
    html = page(alice_client, run)
    assert "size 2 of 2: 128" in words(html)
    assert "1 of 1 card" not in words(html)
