"""Reuse before re-run: only a certified result of an equal spec, card and stack is offered."""

from typing import Any

import pytest
from django.test import Client

from analysis.models import Attempt, Device, Run
from analysis.runs.earlier.reuse import earlier_result
from engine.text.units import GIB
from tests.factories import make_card, make_device, make_measured_run, make_spec
from tests.factories.pages import form_data

pytestmark = pytest.mark.django_db


def offered(device: Device, **fields: Any) -> int | None:
    found = earlier_result(make_spec(**{"current_batch_size": 4, **fields}), [device])
    return found.run.pk if found else None


def test_an_equal_spec_on_the_same_card_is_offered_with_its_stack() -> None:
    card = make_card()
    run = make_measured_run(card)
    found = earlier_result(run.run_spec, [card])
    assert found is not None
    assert (found.run.pk, found.torch, found.library) == (run.pk, "0.0", "transformers 0.2")


@pytest.mark.parametrize(
    "other",
    [
        {"optimizer": "sgd"},
        {"sequence_length": 64},
        {"memory_limit_bytes": 2 * GIB},
        {"current_batch_size": 5},
    ],
)
def test_another_setting_is_another_question(other: dict[str, Any]) -> None:
    card = make_card()
    make_measured_run(card)
    assert offered(card, **other) is None


@pytest.mark.parametrize("other", [{"price_per_hour_usd": 9.0}, {"runs_per_year": 1}, {"time_budget_seconds": 60.0}])
def test_an_assumption_changes_nothing_that_is_measured(other: dict[str, Any]) -> None:
    card = make_card()
    run = make_measured_run(card)
    assert offered(card, **other) == run.pk


def test_the_default_input_size_is_the_same_when_it_is_spelled_out() -> None:
    card = make_card()
    run = make_measured_run(card)
    assert offered(card, sequence_length=128) == run.pk


def test_another_card_of_the_class_answers_too() -> None:
    run = make_measured_run(make_card(0))
    sister = make_card(1)
    assert offered(sister) is None  # nothing is known of its stack yet
    make_measured_run(sister, optimizer="sgd")
    assert offered(sister) == run.pk


def test_a_card_of_the_same_name_with_other_memory_is_another_class() -> None:
    make_measured_run(make_card(0))
    other = make_card(1, capacity_bytes=40 * GIB)
    make_measured_run(other, optimizer="sgd")
    assert offered(other) is None


def test_a_stack_that_has_moved_on_is_not_offered() -> None:
    card = make_card()
    make_measured_run(card)
    newer = make_measured_run(card, stack={"torch": "9.9"}, optimizer="sgd")
    assert offered(card) is None
    assert offered(card, optimizer="sgd") == newer.pk


@pytest.mark.parametrize("columns", [{"certified": False}, {"is_shared": True}, {"is_shared": None}])
def test_what_proves_nothing_of_the_card_is_not_offered(columns: dict[str, Any]) -> None:
    card = make_card()
    Run.objects.filter(pk=make_measured_run(card).pk).update(**columns)
    assert offered(card) is None


def test_without_a_recorded_environment_nothing_is_offered() -> None:
    card = make_card()
    make_measured_run(card)
    Attempt.objects.update(environment=None)
    assert offered(card) is None


def test_the_newest_of_several_is_offered() -> None:
    card = make_card()
    make_measured_run(card)
    newer = make_measured_run(card)
    assert offered(card) == newer.pk


def test_the_answer_costs_the_same_however_many_runs(django_assert_num_queries: Any) -> None:
    card = make_card()
    for _ in range(4):
        make_measured_run(card)
    with django_assert_num_queries(2):
        assert offered(card)


def test_the_form_offers_what_was_measured_and_stores_nothing(alice_client: Client) -> None:
    card = make_card()
    run = make_measured_run(card)
    response = alice_client.post("/runs/new/", form_data(card, current_batch_size="4"))
    text = response.content.decode()
    assert response.status_code == 200
    assert f'href="{run.get_absolute_url()}">Open run {run.pk}' in text
    assert "8 is 2.00x as fast as 4" in text
    assert Run.objects.count() == 1


def test_measuring_again_is_one_button_away(alice_client: Client) -> None:
    card = make_card()
    make_measured_run(card)
    alice_client.post("/runs/new/", form_data(card, current_batch_size="4", again="1"))
    assert Run.objects.count() == 2


def test_the_api_measures_whatever_was_measured_before(alice_client: Client) -> None:
    run = make_measured_run(make_device(), current_batch_size=16)
    body = {"model": "bert-tiny", "device": "cpu"}
    response = alice_client.post("/api/v1/runs/", body, content_type="application/json")
    assert response.status_code in (201, 202)
    assert Run.objects.exclude(pk=run.pk).count() == 1


def test_any_card_of_a_class_asks_all_of_them(alice_client: Client) -> None:
    first, _ = make_card(0), make_card(1)
    run = make_measured_run(first)
    asked = form_data(first, current_batch_size="4", device=f"any cuda {first.name}")
    response = alice_client.post("/runs/new/", asked)
    assert f"Open run {run.pk}" in response.content.decode()


def test_a_spec_that_can_no_longer_be_read_is_passed_over() -> None:
    card = make_card()
    run = make_measured_run(card)
    Run.objects.filter(pk=run.pk).update(spec=run.spec | {"a_later_setting": 1})
    assert offered(card) is None
