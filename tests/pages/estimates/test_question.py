"""`/estimates/` is a field with an answer: what is stored is shown at once, and what is not can be made."""

import re
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from analysis.models import GpuPrice, Run
from analysis.permissions import VIEWER
from engine.estimate.gpus import gpus
from tests.factories import make_claimed_estimate, make_user
from tests.factories.estimates import make_stored_estimate
from tests.factories.pages import words
from tests.pages.estimates.test_estimate_errors import graded

pytestmark = pytest.mark.django_db

PATH = "/estimates/"


def asked(client: Client, status: int = 200, **question: object) -> str:
    response = client.get(f"{PATH}?{urlencode({'model': 'bert', 'gpu': 'a10', **question})}")
    assert response.status_code == status, response.content.decode()
    return response.content.decode()


def test_the_form_comes_first_and_shows_three_fields(alice_client: Client) -> None:
    html = alice_client.get(PATH).content.decode()
    assert html.index('name="current_batch_size"') < html.index("<details") < html.index("Latest estimates")
    assert html.index('name="precision"') > html.index("<details")
    assert html.count("button-go") == 1


def test_a_stored_estimate_answers_whatever_size_is_used_today(alice_client: Client) -> None:
    run = make_stored_estimate()
    text = asked(alice_client, current_batch_size=50)
    assert "<h1>Up to 89 fit an A10; your 50 leaves at least 48 % unused.</h1>" in text
    assert run.get_absolute_url() in text
    assert "<h1>Does not fit: 100 on an A10. Up to 89 fit.</h1>" in asked(alice_client, current_batch_size=100)


def test_the_newest_of_equal_estimates_answers(alice_client: Client) -> None:
    make_stored_estimate(), make_stored_estimate(changes={"safe_batch_size": 70})
    assert "<h1>Up to 70 fit an A10" in asked(alice_client)


@pytest.mark.parametrize(
    "other", [{"precision": "bf16"}, {"optimizer": "sgd"}, {"sequence_length": 64}, {"gradient_checkpointing": "on"}]
)
def test_other_settings_are_another_question(alice_client: Client, other: dict[str, object]) -> None:
    make_stored_estimate()
    text = words(asked(alice_client, **other))
    assert "Not estimated yet" in text
    assert "Stored for this model: A10 · fp32 · AdamW" in text


def test_the_default_length_given_explicitly_is_the_same_question(alice_client: Client) -> None:
    make_stored_estimate()
    assert "Up to 89" in asked(alice_client, sequence_length=128)


def test_an_estimate_under_a_memory_limit_answers_nothing_else(alice_client: Client) -> None:
    make_stored_estimate(memory_limit_bytes=8 * 2**30)
    assert "Not estimated yet" in asked(alice_client)


def test_all_gpus_are_answered_by_one_table_that_sorts_and_filters_by_the_address(alice_client: Client) -> None:
    make_stored_estimate("all")
    html = asked(alice_client, gpu="all", sort="name")
    assert f"All {len(gpus())} GPUs fit the default 16" in html
    assert 'href="?' in html
    names = re.findall(r'<th scope="row">(.*?) <span', html.partition('class="gpus"')[2].partition("</table>")[0])
    assert names == sorted(names, key=str.lower)
    addresses = re.findall(r'href="\?([^"#]*sort=price)', html)
    assert "model=bert" in addresses[0]
    fewer = words(asked(alice_client, gpu="all", card="a100"))
    assert f"of {len(gpus())} GPUs" in fewer


def test_of_all_gpus_those_without_an_estimate_are_named(alice_client: Client) -> None:
    make_stored_estimate("a10"), make_stored_estimate("t4")
    text = words(asked(alice_client, gpu="all"))
    assert "All 2 GPUs fit the default 16" in text
    assert "Not estimated yet for these settings:" in text
    assert "H100" in text.partition("Not estimated yet for these settings:")[2]


def test_gpus_that_cannot_run_the_settings_are_said_to_be_unable(alice_client: Client) -> None:
    make_stored_estimate("a10", precision="bf16")
    text = words(asked(alice_client, gpu="all", precision="bf16"))
    assert "T4" in text.partition("cannot run the settings:")[2]
    assert "precision" in words(asked(alice_client, 400, gpu="t4", precision="bf16"))


def test_who_reads_sees_the_labs_price(alice_client: Client) -> None:
    GpuPrice.objects.create(gpu="a10", price_per_hour_usd=0.01, source="ours", valid_from="2026-01-02")
    make_stored_estimate("all")
    assert "lowest known price: an A10, $0.01 an hour" in asked(alice_client, gpu="all")


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "nonsense"},
        {"gpu": "a100-1gb"},
        {"gpu": "%' OR 1=1"},
        {"current_batch_size": "0"},
        {"current_batch_size": "many"},
        {"image_size": "224"},
        {"gradient_checkpointing": "maybe"},
        {"memory_limit_bytes": "1"},
        {"config": "{}"},
    ],
)
def test_nonsense_is_refused_by_its_name(alice_client: Client, wrong: dict[str, str]) -> None:
    text = words(asked(alice_client, 400, **wrong))
    assert "Not answered: 1 parameter to correct." in text


def test_a_name_that_is_nearly_right_gets_the_right_one(alice_client: Client) -> None:
    assert "did you mean bert" in words(asked(alice_client, 400, model="brt"))
    assert "did you mean a10" in words(asked(alice_client, 400, gpu="a10x"))


def test_settings_that_are_right_stay_folded_above_the_answer(alice_client: Client) -> None:
    make_stored_estimate(precision="bf16")
    assert '<details class="more">' in asked(alice_client, precision="bf16")
    assert '<details class="more" open>' in asked(alice_client, 400, precision="fp64")


def test_a_missing_estimate_is_made_by_those_who_may_start_one(alice_client: Client) -> None:
    question = {"model": "bert", "gpu": "a10", "current_batch_size": "16", "precision": "bf16", "optimizer": "adamw"}
    response = alice_client.post(PATH, question)
    run = Run.objects.get()
    assert response["Location"] == run.get_absolute_url()
    assert (run.kind, run.gpu, run.precision) == ("estimate", "a10", "bf16")
    assert alice_client.post(PATH, question)["Location"] == run.get_absolute_url(), "the same one, not another"


def test_a_stored_one_is_shown_and_nothing_is_started(alice_client: Client) -> None:
    make_stored_estimate()
    location = alice_client.post(PATH, {"model": "bert", "gpu": "a10", "current_batch_size": "32"})["Location"]
    assert location == "/estimates/?model=bert&gpu=a10&current_batch_size=32"
    assert "your 32 leaves" in alice_client.get(location).content.decode()
    assert Run.objects.count() == 1


def test_one_that_is_being_made_is_linked(alice_client: Client) -> None:
    run = make_claimed_estimate(model="bert")
    assert f"Estimate {run.pk} is making it." in words(asked(alice_client))


def test_a_wrong_post_starts_nothing(alice_client: Client) -> None:
    assert alice_client.post(PATH, {"model": "bert", "gpu": "t4", "precision": "bf16"}).status_code == 422
    assert not Run.objects.exists()


def test_a_viewer_asks_and_starts_nothing(client: Client) -> None:
    client.force_login(make_user("bob", role=VIEWER))
    assert "People with the role operator can make one." in words(asked(client))
    assert client.post(PATH, {"model": "bert", "gpu": "a10"}).status_code == 403
    assert not Run.objects.exists()


def test_the_chart_of_accuracy_waits_for_three_runs(alice_client: Client) -> None:
    graded(0.01), graded(0.02)
    assert 'data-chart="errors"' not in alice_client.get(PATH).content.decode()
    graded(0.03)
    assert 'data-chart="errors"' in alice_client.get(PATH).content.decode()


def test_the_answer_takes_the_same_queries_however_many_estimates(
    alice_client: Client, django_assert_num_queries
) -> None:
    make_stored_estimate("all")
    with CaptureQueriesContext(connection) as first:
        asked(alice_client, gpu="all")
    for _ in range(3):
        make_stored_estimate("all")
        make_claimed_estimate("t4", model="bert")
    with django_assert_num_queries(len(first)):
        asked(alice_client, gpu="all")
