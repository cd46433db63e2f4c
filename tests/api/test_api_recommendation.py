"""A script asks for its batch size before it trains."""

import pytest
from django.test import Client

from engine.estimate.gpus import gpus
from tests.factories import make_card, make_device, make_measured_run

pytestmark = pytest.mark.django_db
PATH = "/api/v1/recommendation/"
ASKED = {"model": "bert-tiny", "current_batch_size": 4}


def test_the_newest_equal_measurement_answers(alice_client: Client) -> None:
    card = make_card()
    make_measured_run(card)
    run = make_measured_run(card)
    answer = alice_client.get(PATH, {**ASKED, "device": "cuda"}).json()
    assert (answer["run"], answer["certified"], answer["device_name"]) == (run.pk, True, card.name)
    assert (answer["recommended_batch_size"], answer["largest_batch_size"]) == (8, 8)
    assert answer["recommended_samples_per_second"] == 16.0
    assert 0 <= answer["age_seconds"] < 60


def test_a_run_on_a_cpu_answers_for_the_cpu(alice_client: Client) -> None:
    run = make_measured_run(make_device())
    assert alice_client.get(PATH, {**ASKED, "device": "cpu"}).json()["run"] == run.pk


def test_a_card_of_the_catalogue_stands_for_all_of_its_class_here(alice_client: Client) -> None:
    known = gpus()["a100-80gb"]
    run = make_measured_run(make_card(name=known.torch_names[0], capacity_bytes=known.total_bytes))
    assert alice_client.get(PATH, {**ASKED, "gpu": "a100-80gb"}).json()["run"] == run.pk
    assert alice_client.get(PATH, {**ASKED, "gpu": "a10"}).status_code == 404


@pytest.mark.parametrize(
    "other",
    [
        {"precision": "bf16"},
        {"gradient_checkpointing": "true"},
        {"reserve_fraction": "0.1"},
    ],
)
def test_of_another_question_there_is_no_answer_yet(alice_client: Client, other: dict[str, str]) -> None:
    make_measured_run(make_card())
    answer = alice_client.get(PATH, {**ASKED, **other})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_measured")
    assert "POST /api/v1/runs/" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"model": ""}, "model"),
        ({"model": "bart"}, "model"),
        ({"precision": "int8"}, "precision"),
        ({"gradient_checkpointing": "perhaps"}, "gradient_checkpointing"),
        ({"max_batch_size": "many"}, "max_batch_size"),
        ({"device": "cuda:7"}, "device"),
        ({"gpu": "voodoo-2"}, "gpu"),
        ({"gpu": "a10", "device": "cuda"}, "gpu"),
        ({"time_budget_seconds": "60"}, "time_budget_seconds"),
    ],
)
def test_what_is_not_allowed_is_refused_by_its_parameter(
    alice_client: Client, values: dict[str, str], name: str
) -> None:
    make_card()
    answer = alice_client.get(PATH, {**ASKED, **values})
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (400, name)


def test_a_card_that_others_may_use_alone_is_not_asked(alice_client: Client, root) -> None:
    card = make_card()
    make_measured_run(card)
    card.allowed_users.add(root)
    assert alice_client.get(PATH, ASKED).status_code == 400
