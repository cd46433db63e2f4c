"""Subscriptions to news, and devices, over the API."""

import datetime as dt
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from analysis.accounts.tokens import token_create
from analysis.models import SavedView, Subscription
from engine.text.units import GIB
from tests.factories import make_card, make_claimed_run, make_device, make_host, make_run, make_user

pytestmark = pytest.mark.django_db

LIST = "/api/v1/subscriptions/"
BODY = {"name": "ci", "channel": "webhook", "kinds": ["run.finished"], "url": "https://ci.example/hook"}


def post(client: Client, address: str = LIST, **body: Any) -> Any:
    return client.post(address, body, content_type="application/json")


def test_only_the_response_that_creates_it_shows_the_secret(alice_client: Client) -> None:
    created = post(alice_client, **BODY)
    assert created.status_code == 201
    assert created.json()["secret"].startswith("mm_whsec_")
    assert created.headers["Cache-Control"] == "no-store"
    for address in (created.headers["Location"], LIST):
        assert "mm_whsec_" not in alice_client.get(address).content.decode()


def test_the_database_holds_no_secret(alice_client: Client) -> None:
    secret = post(alice_client, **BODY).json()["secret"]
    assert secret.removeprefix("mm_whsec_") not in str(Subscription.objects.values().get())


def test_a_new_secret_differs(alice_client: Client) -> None:
    created = post(alice_client, **BODY).json()
    rotated = post(alice_client, f"{LIST}{created['id']}/secret/").json()
    assert rotated["secret"] != created["secret"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"url": "http://ci.example/"}, "url"),
        ({"kinds": ["test"]}, "kinds/0"),
        ({"kinds": []}, "kinds"),
        ({"channel": "email"}, "channel"),
        ({"name": " "}, "name"),
        ({"view": 999}, "view"),
        ({"surplus": 1}, "surplus"),
    ],
)
def test_a_wrong_member_is_refused_by_its_name(alice_client: Client, change: dict[str, Any], field: str) -> None:
    body = {**BODY, **change}
    if body["channel"] == "email":
        body["url"] = ""
    response = post(alice_client, **body)
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == f"/{field}"


def test_a_change_keeps_what_is_not_named_and_enables_it_again(alice_client: Client) -> None:
    number = post(alice_client, **BODY).json()["id"]
    Subscription.objects.update(disabled_at="2026-01-01T00:00Z", disabled_because="x")
    address = f"{LIST}{number}/"
    changed = alice_client.patch(address, {"kinds": ["trend.step"]}, content_type="application/json").json()
    assert (changed["kinds"], changed["url"], changed["disabled_at"]) == (["trend.step"], BODY["url"], None)


def test_a_subscription_whose_view_was_deleted_does_not_widen_by_itself(alice_client: Client, alice: User) -> None:
    view = SavedView.objects.create(owner=alice, name="v", query="state=failed")
    number = post(alice_client, **BODY, view=view.pk).json()["id"]
    view.delete()
    address = f"{LIST}{number}/"
    assert alice_client.get(address).json()["scope"] == "view"
    response = alice_client.patch(address, {"name": "new"}, content_type="application/json")
    assert response.json()["errors"][0]["pointer"] == "/view"


def test_a_test_is_a_delivery_in_the_log(alice_client: Client) -> None:
    number = post(alice_client, **BODY).json()["id"]
    sent = post(alice_client, f"{LIST}{number}/test/")
    assert sent.status_code == 202
    (delivery,) = alice_client.get(sent.headers["Location"]).json()["results"]
    assert (delivery["event"], delivery["state"], delivery["attempts"]) == ("test", "waiting", [])


@pytest.mark.parametrize(("may_write", "status"), [(False, 403), (True, 201)])
def test_a_token_that_only_reads_changes_nothing(db: None, may_write: bool, status: int) -> None:
    _, secret = token_create(owner=make_user("bob"), name="t", may_write=may_write, expires_at=None)
    headers = {"Authorization": f"Bearer {secret}"}
    response = Client().post(LIST, BODY, content_type="application/json", headers=headers)
    assert response.status_code == status


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
