"""Saved views, tokens, share links and the audit log through the API: whose they are, and who may change them."""

from base64 import b64encode
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.accounts.tokens import token_create
from analysis.audit.record import record
from analysis.models import ApiToken, Run, SavedView
from tests.factories import make_measured_run, make_user

pytestmark = pytest.mark.django_db

VIEWS, TOKENS, AUDIT = "/api/v1/saved-views/", "/api/v1/tokens/", "/api/v1/audit/"


def post(client: Client, path: str, body: Any, **headers: str) -> Any:
    return client.post(path, body, content_type="application/json", headers=headers)


def bearer(owner: User, *, may_write: bool) -> dict[str, str]:
    _, secret = token_create(owner=owner, name="test", may_write=may_write, expires_at=None)
    return {"Authorization": f"Bearer {secret}"}


def test_a_view_is_kept_and_forgotten(alice_client: Client) -> None:
    answer = post(alice_client, VIEWS, {"name": "fast", "query": "state=finished&sort=-largest"})
    assert (answer.status_code, answer.json()["owner"], answer.json()["is_own"]) == (201, "alice", True)
    address = answer.headers["Location"]
    assert alice_client.get(address).json() == answer.json()
    assert alice_client.delete(address).status_code == 204
    assert not SavedView.objects.exists()


def test_a_view_that_the_history_refuses_is_not_kept(alice_client: Client) -> None:
    answer = post(alice_client, VIEWS, {"name": "wrong", "query": "colour=red"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/query")
    assert not SavedView.objects.exists()


def test_others_see_a_view_when_it_is_shared_and_never_delete_it(alice_client: Client) -> None:
    bob = make_user("bob")
    mine = SavedView.objects.create(owner=bob, name="mine", query="")
    ours = SavedView.objects.create(owner=bob, name="ours", query="", is_shared=True)
    assert [view["name"] for view in alice_client.get(VIEWS).json()["results"]] == ["ours"]
    assert alice_client.delete(f"{VIEWS}{mine.pk}/").status_code == 404
    assert alice_client.delete(f"{VIEWS}{ours.pk}/").status_code == 403
    assert SavedView.objects.count() == 2


def test_a_manager_reads_and_deletes_a_view_that_is_not_shared(root_client: Client) -> None:
    address = f"{VIEWS}{SavedView.objects.create(owner=make_user('bob'), name='mine', query='').pk}/"
    assert root_client.get(VIEWS).json()["results"] == []
    assert [root_client.get(address).status_code, root_client.delete(address).status_code] == [200, 204]


def test_a_token_is_shown_once_and_works(alice_client: Client) -> None:
    answer = post(alice_client, TOKENS, {"name": "ci", "may_write": True})
    secret = answer.json()["secret"]
    assert (answer.status_code, answer.headers["Cache-Control"], secret[:5]) == (201, "no-store", "mm_w_")
    assert "secret" not in alice_client.get(answer.headers["Location"]).json()
    assert secret not in alice_client.get(TOKENS).content.decode()
    assert Client().get("/api/v1/runs/", headers={"Authorization": f"Bearer {secret}"}).status_code == 200


def test_a_token_makes_and_revokes_no_token(alice: User) -> None:
    headers = bearer(alice, may_write=True)
    token = ApiToken.objects.get()
    assert post(Client(), TOKENS, {"name": "more"}, **headers).status_code == 403
    assert Client().delete(f"{TOKENS}{token.pk}/", headers=headers).status_code == 403
    assert ApiToken.objects.live().count() == 1


def test_a_password_makes_a_token(alice: User) -> None:
    word = b64encode(b"alice:alice's password").decode()
    answer = post(Client(), TOKENS, {"name": "ci"}, Authorization=f"Basic {word}")
    assert (answer.status_code, answer.json()["may_write"]) == (201, False)


def test_a_viewers_token_only_reads(vera_client: Client) -> None:
    assert post(vera_client, TOKENS, {"name": "read"}).status_code == 201
    answer = post(vera_client, TOKENS, {"name": "write", "may_write": True})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/may_write")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "a\x00b"}, "/name"),
        ({"name": "ci", "may_write": "yes"}, "/may_write"),
        ({"name": "ci", "expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"name": "ci", "expires_at": "soon"}, "/expires_at"),
        ({"name": "ci", "owner": "root"}, "/owner"),
    ],
)
def test_a_wrong_token_names_its_place(alice_client: Client, body: dict[str, Any], pointer: str) -> None:
    answer = post(alice_client, TOKENS, body)
    assert answer.status_code == 400
    assert answer.json()["errors"] == [] or answer.json()["errors"][0]["pointer"] == pointer
    assert not ApiToken.objects.exists()


def test_a_revoked_token_stays_in_the_list_and_opens_nothing(alice: User, alice_client: Client) -> None:
    headers = bearer(alice, may_write=False)
    token = ApiToken.objects.get()
    assert [alice_client.delete(f"{TOKENS}{token.pk}/").status_code for _ in range(2)] == [204, 204]
    assert alice_client.get(TOKENS).json()["results"][0]["revoked_at"] is not None
    assert Client().get("/api/v1/runs/", headers=headers).status_code == 401


def test_tokens_of_others_are_for_managers(alice: User, alice_client: Client, root_client: Client) -> None:
    bob = make_user("bob")
    bearer(bob, may_write=True)
    token = ApiToken.objects.get()
    assert alice_client.get(f"{TOKENS}{token.pk}/").status_code == 404
    assert alice_client.delete(f"{TOKENS}{token.pk}/").status_code == 404
    assert alice_client.get(f"{TOKENS}?owner=all").json()["errors"][0]["parameter"] == "owner"
    assert [one["owner"] for one in root_client.get(f"{TOKENS}?owner=all").json()["results"]] == ["bob"]
    assert root_client.get(TOKENS).json()["results"] == []
    assert root_client.delete(f"{TOKENS}{token.pk}/").status_code == 204


def test_an_entry_says_who_did_what(alice_client: Client, root_client: Client) -> None:
    post(alice_client, TOKENS, {"name": "ci"}, **{"X-Request-ID": "from-a-test"})
    [entry] = root_client.get(AUDIT, {"actor": "alice", "action": "token.create"}).json()["results"]
    assert (entry["actor"], entry["target_kind"], entry["request_id"]) == ("alice", "apitoken", "from-a-test")
    assert (entry["before"], entry["after"]["name"]) == (None, "ci")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, 2),
        ({"target_kind": "run"}, 1),
        ({"target_kind": "run", "target_id": "7"}, 1),
        ({"target_kind": "device", "target_id": "7"}, 0),
        ({"actor": "nobody"}, 0),
        ({"since": "2026-01-01T00:00:00Z"}, 2),
        ({"until": "2026-01-01T00:00:00Z"}, 0),
    ],
)
def test_entries_are_filtered(root_client: Client, query: dict[str, str], found: int) -> None:
    record("run.cancel", target=("run", "7"))
    record("device.drain", target=("device", "9"))
    ours = [e for e in root_client.get(AUDIT, query).json()["results"] if e["action"] in ("run.cancel", "device.drain")]
    assert len(ours) == found


def test_a_number_without_its_kind_is_refused_naming_both(root_client: Client) -> None:
    answer = root_client.get(AUDIT, {"target_id": "9"})
    named = [error["parameter"] for error in answer.json()["errors"]]
    assert (answer.status_code, named) == (400, ["target_id", "target_kind"])


def test_a_link_is_created_listed_and_withdrawn(alice, alice_client):
    run = make_measured_run()
    Run.objects.update(requested_by=alice)
    body = {"run": run.pk, "days": 7}
    made = alice_client.post("/api/v1/share-links/", body, content_type="application/json")
    assert made.status_code == 201
    link = made.json()
    assert Client().get(link["url"]).status_code == Client().get(link["badge_url"]).status_code == 200
    listed = alice_client.get(f"/api/v1/share-links/?run={run.pk}").json()["results"]
    assert listed == [{name: value for name, value in link.items() if name not in ("url", "badge_url")}]
    assert alice_client.delete(made.headers["Location"]).status_code == 204
    assert alice_client.delete(made.headers["Location"]).status_code == 204
    assert Client().get(link["url"]).status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer"), [({"days": 5}, "/days"), ({"days": None}, "/days"), ({"run": 999}, "/run")]
)
def test_what_is_not_allowed_names_its_field(alice, alice_client, body, pointer):
    run = make_measured_run()
    Run.objects.update(requested_by=alice)
    answer = alice_client.post(
        "/api/v1/share-links/", {"run": run.pk, "days": 7, **body}, content_type="application/json"
    )
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_another_persons_links_are_not_listed(alice, alice_client):
    run = make_measured_run()
    Run.objects.update(requested_by=alice)
    alice_client.post("/api/v1/share-links/", {"run": run.pk, "days": 7}, content_type="application/json")
    client = Client()
    client.force_login(make_user("olga"))
    assert client.get("/api/v1/share-links/").json()["results"] == []
