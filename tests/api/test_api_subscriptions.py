"""Subscriptions to news over the API."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.accounts.tokens import token_create
from analysis.models import SavedView, Subscription
from tests.factories import make_user

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
        ({"url": "https://127.0.0.1/"}, "url"),
        ({"url": "https://u:p@ci.example/"}, "url"),
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
