"""Fleet and run page show which devices a run of several holds, and how long each was used."""

import html
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from analysis.lists.use.load import held_since
from analysis.models import Device, Run
from analysis.runs import services
from tests.factories import make_card, make_run_of_several

pytestmark = pytest.mark.django_db


@pytest.fixture
def cards() -> list[Device]:
    return [make_card(number, uuid=f"GPU-{number}") for number in range(3)]


@pytest.fixture
def run(cards: list[Device]) -> Run:
    make_run_of_several(2)
    wanted = services.claim_next(device=cards[0], owner="worker")
    run = services.set_claim(wanted=wanted, owner="worker")
    assert run is not None
    return run


def words(client: Client, address: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", client.get(address).content.decode())).split())


def test_each_device_names_the_run_and_the_devices_that_it_holds_too(run: Run, alice_client: Client) -> None:
    shown = words(alice_client, "/fleet/")
    assert shown.count(f"run {run.pk} BERT tiny with cuda:") == 2
    assert "BERT tiny with cuda:1" in shown
    assert shown.count("no run") == 1


def test_a_waiting_run_says_how_many_it_needs(run: Run, alice_client: Client) -> None:
    waiting = make_run_of_several(3)
    assert f"run {waiting.pk} BERT tiny on 3 × GPU of one host: next, after run {run.pk}" in words(
        alice_client, "/fleet/"
    )
    assert f"next, after run {run.pk}" in words(alice_client, waiting.get_absolute_url())


def test_the_api_names_the_run_of_each_device_and_the_devices_of_each_attempt(run: Run, alice_client: Client) -> None:
    devices = alice_client.get("/api/v1/devices/").json()["results"]
    assert {device["device"]: device["running_run"] for device in devices} == {
        "cuda:0": run.pk,
        "cuda:1": run.pk,
        "cuda:2": None,
    }
    answer = alice_client.get(f"/api/v1/runs/{run.pk}/").json()
    assert (answer["device_count"], answer["attempts"][0]["devices"]) == (2, ["cuda:0", "cuda:1"])


def test_the_page_of_an_ended_run_lists_the_devices_of_its_attempt(run: Run, alice_client: Client) -> None:
    services.run_fail(run_id=run.pk, token=run.token, code="engine_died", message="It died.")
    shown = words(alice_client, run.get_absolute_url())
    assert "lab cuda:0, cuda:1" in shown
    assert "2 × A100" in shown


def test_each_of_its_devices_was_in_use(run: Run, cards: list[Device]) -> None:
    held = held_since(timezone.now() - timedelta(days=1))
    assert sorted((each.device_id, each.is_further) for each in held) == [(cards[0].pk, False), (cards[1].pk, True)]
