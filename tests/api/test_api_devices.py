"""Devices through the API: what they are and do, and what is kept to the portal."""

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone

from engine.text.units import GIB
from tests.factories import make_card, make_claimed_run, make_device, make_host, make_run

pytestmark = pytest.mark.django_db
PATH = "/api/v1/devices/"


def test_a_device_says_what_it_is_and_does(alice_client: Client) -> None:
    read_at = timezone.now() - dt.timedelta(seconds=30)
    card = make_card(price_per_hour_usd=1.5, memory_used_bytes=2 * GIB, memory_read_at=read_at)
    running, waiting = make_claimed_run(card), make_run(card)
    answer = alice_client.get(f"{PATH}{card.pk}/").json()
    assert (answer["host"], answer["device"], answer["gpu"], answer["price_per_hour_usd"]) == (
        "lab",
        "cuda:0",
        None,
        1.5,
    )
    assert (answer["running_run"], answer["waiting_count"], waiting.state) == (running.pk, 1, "queued")
    assert (answer["enabled"], answer["takes_runs"], answer["is_alive"]) == (True, True, True)
    assert answer["memory_used_bytes"] == 2 * GIB
    assert 30 <= answer["memory_age_seconds"] < 60


def test_its_calibration_is_not_shown_but_that_there_is_one(alice_client: Client) -> None:
    card = make_card(calibration={"gpu_id": "a10", "context_bytes": 4711}, calibrated_at=timezone.now())
    response = alice_client.get(f"{PATH}{card.pk}/")
    assert response.json()["is_calibrated"] is True
    assert b"4711" not in response.content


def test_what_was_never_read_is_unknown(alice_client: Client) -> None:
    device = make_device()
    answer = alice_client.get(f"{PATH}{device.pk}/").json()
    unknown = [answer[name] for name in ("last_seen_at", "memory_used_bytes", "memory_age_seconds", "running_run")]
    assert (unknown, answer["is_alive"]) == ([None] * 4, False)


def test_a_host_that_is_drained_drains_its_devices(alice_client: Client) -> None:
    card = make_card(host=make_host(drained=True, maintenance_note="new fans"))
    answer = alice_client.get(f"{PATH}{card.pk}/").json()
    assert (answer["drained"], answer["takes_runs"], answer["maintenance_note"]) == (True, False, "new fans")


@pytest.mark.parametrize(("seconds", "takes_runs"), [(10, True), (120, False)])
def test_a_device_whose_worker_is_silent_takes_no_runs(alice_client: Client, seconds: int, takes_runs: bool) -> None:
    """Its host may be dead: a run that names it would wait, nobody knows how long."""
    card = make_card(last_seen_at=timezone.now() - dt.timedelta(seconds=seconds))
    answer = alice_client.get(f"{PATH}{card.pk}/").json()
    assert (answer["takes_runs"], answer["is_alive"], answer["enabled"]) == (takes_runs, takes_runs, True)


@pytest.mark.parametrize(
    ("query", "found"), [("", 3), ("?kind=cpu", 1), ("?host=lab", 2), ("?enabled=false", 1), ("?host=nowhere", 0)]
)
def test_devices_are_filtered(alice_client: Client, query: str, found: int) -> None:
    make_card()
    make_device(enabled=False)
    make_card(1, host="attic")
    assert len(alice_client.get(f"{PATH}{query}").json()["results"]) == found


def test_a_large_fleet_comes_in_pages(alice_client: Client) -> None:
    cards = [make_card(number) for number in range(3)]
    first = alice_client.get(f"{PATH}?limit=2").json()
    second = alice_client.get(first["next"]).json()
    assert [device["id"] for device in (*first["results"], *second["results"])] == [card.pk for card in cards]
    assert second["next"] is None
