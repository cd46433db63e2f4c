"""What to paste after a run: the page and the API's document of it."""

import pytest
from django.test import Client

from analysis.models import Run
from engine.trainings.script.spec import TuneSpec
from tests.factories import make_result, make_result_that_does_not_fit, make_run
from tests.factories.estimates import make_stored_estimate
from tests.factories.speeds import make_timed_result, make_unmeasurable_result
from tests.factories.tuned import COMMAND, tuned
from tests.pages.run.test_result import finished, words

pytestmark = pytest.mark.django_db


def page(client: Client, run: Run, query: str = "", status: int = 200) -> str:
    response = client.get(f"/runs/{run.pk}/advice/{query}", headers={"accept": "text/html"})
    assert response.status_code == status
    return words(response.content.decode())


def api(client: Client, run: Run, query: str = "", status: int = 200) -> dict:
    response = client.get(f"/api/v1/runs/{run.pk}/advice/{query}")
    assert response.status_code == status, response.content
    return response.json()


def test_result_links_to_its_advice_which_shows_exact_pairs_and_code(alice_client: Client) -> None:
    run = finished(make_result())
    assert f'href="/runs/{run.pk}/advice/"' in alice_client.get(f"/runs/{run.pk}/").content.decode()
    text = page(alice_client, run, "?global_batch=16")
    assert "keeps a global batch of exactly 16" in text
    assert "per_device_train_batch_size=8" in text
    assert "gradient_accumulation_steps=2" in text
    assert "McCandlish et al. 2018" in text


def test_code_can_be_copied(alice_client: Client) -> None:
    response = alice_client.get(f"/runs/{finished(make_result()).pk}/advice/")
    assert 'data-copy="the code for Plain PyTorch"' in response.content.decode()


def test_prime_global_batch_is_not_changed_and_its_neighbours_are_offered(alice_client: Client) -> None:
    run = finished(make_result())
    text = alice_client.get(f"/runs/{run.pk}/advice/?global_batch=113").content.decode()
    assert "?global_batch=112&amp;devices=1" in text
    assert "<pre" not in text  # no code for a batch that was not requested


@pytest.mark.parametrize("query", ["?global_batch=0", "?global_batch=x", "?devices=0", "?batch=3"])
def test_wrong_parameter_is_named_by_the_page_and_refused_by_the_api(alice_client: Client, query: str) -> None:
    run = finished(make_result())
    name = query[1:].partition("=")[0]
    assert name in page(alice_client, run, query)
    assert api(alice_client, run, query, 400)["errors"][0]["parameter"] == name


def test_estimate_is_labelled_and_one_of_several_cards_is_named(alice_client: Client) -> None:
    one, every = make_stored_estimate("a10"), make_stored_estimate("all")
    assert "No GPU was used" in page(alice_client, one)
    document = api(alice_client, one)
    assert (document["kind"], document["recommended_batch_size"]) == ("estimated", None)
    assert document["with_margin_batch_size"] == one.estimated_safe_batch_size
    assert "Choose one of the GPUs." in page(alice_client, every)
    assert api(alice_client, every, "", 400)["errors"][0]["parameter"] == "gpu"
    assert api(alice_client, every, "?gpu=t4")["chosen"]["samples_per_second"] is None


def test_run_without_a_size_to_recommend_has_no_advice(alice_client: Client) -> None:
    run = finished(make_result_that_does_not_fit())
    assert api(alice_client, run, "", 404)["code"] == "no_advice"
    html = page(alice_client, run)
    assert "This run has no batch size that keeps the reserve" in html
    assert "result: " not in html
    assert 'name="global_batch"' not in html


def test_run_without_a_recommended_size_offers_the_largest_with_the_reserve_by_that_name(alice_client: Client) -> None:
    run = finished(make_unmeasurable_result())
    text = page(alice_client, run)
    assert "What follows is for 8 , the largest size that keeps the reserve." in text
    assert "Each of these keeps a global batch of exactly 8." in text
    assert "result: " not in text
    document = api(alice_client, run, "?global_batch=16&devices=2")
    assert (document["recommended_batch_size"], document["with_margin_batch_size"]) == (None, 8)
    assert document["chosen"]["micro_batch_size"] == 8


def test_run_that_is_not_over_has_no_advice(alice_client: Client) -> None:
    run = make_run()
    problem = api(alice_client, run, "", 404)
    assert (problem["code"], problem["detail"]) == ("no_advice", f"Run {run.pk} is queued: advice needs its result.")
    page(alice_client, run, status=404)


def test_document_keeps_measured_speeds_and_leaves_unknown_ones_null(alice_client: Client) -> None:
    document = api(alice_client, finished(make_result()), "?global_batch=24")
    assert (document["recommended_batch_size"], document["with_margin_batch_size"]) == (8, None)
    speeds = {pair["micro_batch_size"]: pair["samples_per_second"] for pair in document["global_batch"]["pairs"]}
    assert speeds[8] == make_result().recommended.samples_per_second
    assert speeds[6] is None


def test_the_advice_on_ones_own_script_has_the_setting_that_it_promises(alice_client: Client) -> None:
    run = tuned(make_timed_result(), TuneSpec(COMMAND, current_batch_size=4, name="train"))
    text = alice_client.get(f"/runs/{run.pk}/advice/").content.decode()
    assert "in the code below" in text
    assert "python train.py 8</pre>" in text
