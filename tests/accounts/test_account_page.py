"""One's own account: roles, quotas, password, tokens; and the first administrator."""

import html
import re

import pytest
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.test import Client

from analysis.accounts.bootstrap import administrator_create_first
from analysis.accounts.tokens import token_create, token_of
from analysis.models import ApiToken, AuditEntry, Quota, Trust
from analysis.permissions import VIEWER
from tests.factories import make_run, make_user
from tests.factories.pages import words

pytestmark = pytest.mark.django_db


def make_token(client: Client, **fields: str):
    return client.post("/account/tokens/", {"name": "CI", "scope": "read", "days": "90", **fields})


def secret_on(html: str) -> str:
    return re.search(r"mm_[rwp]_[\w-]{43}", html)[0]


def test_it_says_who_i_am_and_what_i_may(alice, alice_client):
    text = words(alice_client.get("/account/").content.decode())
    assert "alice Roles operator Rights read, start runs, and change your own" in text


def test_it_shows_the_quotas_with_their_use(alice, alice_client):
    Quota.objects.create(user=alice, runs_waiting_max=3, time_budget_max_seconds=600)
    make_run(requested_by=alice, time_budget_seconds=300)
    text = words(alice_client.get("/account/").content.decode())
    assert "Runs waiting 1 of 3 Measurements started in 24 hours 1 (no limit) Longest time budget 600 s" in text


def test_a_new_token_is_shown_once_and_works(alice, alice_client):
    answer = make_token(alice_client)
    secret = secret_on(answer.content.decode())
    assert token_of(secret).owner == alice
    assert "no-store" in answer.headers["Cache-Control"]
    assert secret not in alice_client.get("/account/").content.decode()
    assert secret not in str(dict(alice_client.session))


def test_the_first_request_with_a_new_token_can_be_pasted_whole(alice_client):
    text = html.unescape(make_token(alice_client).content.decode())
    secret = secret_on(text)
    assert f'curl -H "Authorization: Bearer {secret}" http://testserver/api/v1/runs/' in text


def test_a_token_lasts_as_long_as_was_asked(alice_client):
    make_token(alice_client)
    make_token(alice_client, days="")
    ends = [token.expires_at and round((token.expires_at - token.created_at).days) for token in ApiToken.objects.all()]
    assert ends == [None, 89] or ends == [None, 90]


@pytest.mark.parametrize("wrong", [{"name": ""}, {"name": "x" * 101}, {"scope": "all"}, {"days": "9999"}])
def test_a_wrong_form_makes_no_token_and_is_shown_again(alice_client, wrong):
    assert make_token(alice_client, **wrong).status_code == 422
    assert not ApiToken.objects.exists()


def test_a_viewer_is_offered_no_token_that_writes():
    client = Client()
    client.force_login(make_user("v", VIEWER))
    assert make_token(client, scope="write").status_code == 422
    assert 'value="write"' not in client.get("/account/").content.decode()


def test_i_revoke_my_own_token_and_no_other(alice, alice_client):
    mine, _ = token_create(owner=alice, name="mine", may_write=False, expires_at=None)
    other, _ = token_create(owner=make_user("bob"), name="bobs", may_write=False, expires_at=None)
    assert "is revoked" in alice_client.post(f"/account/tokens/{mine.pk}/revoke/", follow=True).content.decode()
    assert "another person" in alice_client.post(f"/account/tokens/{other.pk}/revoke/", follow=True).content.decode()
    assert list(ApiToken.objects.filter(revoked_at=None)) == [other]


def test_i_change_my_password_and_stay_logged_in(alice, alice_client):
    new = "correct horse battery"
    data = {"old_password": "alice's password", "new_password1": new, "new_password2": new}
    answer = alice_client.post("/account/password/", data, follow=True)
    assert "Your password is changed" in words(answer.content.decode())
    alice.refresh_from_db()
    assert alice.check_password(new)


def test_a_password_that_is_too_common_is_refused(alice, alice_client):
    data = {"old_password": "alice's password", "new_password1": "password", "new_password2": "password"}
    assert "too common" in alice_client.post("/account/password/", data).content.decode()


def test_the_account_is_linked_on_every_page(alice_client):
    assert 'href="/account/"' in alice_client.get("/", headers={"accept": "text/html"}).content.decode()


def test_a_token_for_reports_is_made_in_one_click_and_shown_once_with_its_command(alice, alice_client):
    answer = alice_client.post("/account/tokens/report/")
    text = html.unescape(answer.content.decode())
    secret = secret_on(text)
    token = token_of(secret)
    assert (token.owner, token.only_reports) == (alice, True)
    assert 89 <= (token.expires_at - token.created_at).days <= 90
    reads = "read -rs MEMORYMARK_TOKEN && export MEMORYMARK_TOKEN &&\n"
    assert f"{reads}memorymark tune --report-to http://testserver/ -- python" in text
    assert f"MEMORYMARK_TOKEN={secret}" not in text, "a line with the secret would be in the shell's history"
    assert "no-store" in answer.headers["Cache-Control"]
    assert secret not in alice_client.get("/account/").content.decode()
    assert "report runs" in words(alice_client.get("/account/").content.decode())


def test_the_command_names_the_public_address_where_one_is_set(alice_client, settings):
    settings.PUBLIC_URL = "https://lab.example"
    assert "--report-to https://lab.example/ --" in alice_client.post("/account/tokens/report/").content.decode()


def test_the_form_makes_a_token_that_only_reports(alice_client):
    make_token(alice_client, scope="report")
    assert ApiToken.objects.get().only_reports


@pytest.mark.parametrize("address", ["/account/tokens/", "/account/tokens/report/"])
def test_what_a_gpu_managers_token_reports_counts_unless_the_tick_is_taken_away(root_client, alice_client, address):
    fields = {"name": "mine", "scope": "report", "days": "90"}
    for ticked in ({"is_trusted": "on"}, {}):
        root_client.post(address, {**fields, **ticked})
    alice_client.post(address, {**fields, "is_trusted": "on"})
    trusted = [Trust.objects.given().filter(token=token).exists() for token in ApiToken.objects.order_by("pk")]
    assert trusted == [True, False, False]
    assert AuditEntry.objects.filter(action="trust.give").count() == 1
    assert "report runs, trusted" in words(root_client.get("/account/").content.decode())


def test_only_a_gpu_manager_is_offered_the_tick(root_client, alice_client):
    for address in ("/account/", "/commands/"):
        assert 'name="is_trusted"' in root_client.get(address).content.decode()
        assert 'name="is_trusted"' not in alice_client.get(address).content.decode()


def test_a_fresh_installation_gets_one_administrator():
    assert administrator_create_first(password="long and secret") == "admin"
    user = User.objects.get()
    assert (user.username, user.is_superuser, user.check_password("long and secret")) == ("admin", True, True)


def test_no_second_one_is_made(root):
    assert administrator_create_first(password="long and secret") is None
    assert User.objects.get() == root


def test_an_ordinary_user_of_that_name_is_not_raised():
    User.objects.create_user("admin")
    assert administrator_create_first(password="long and secret") == "admin2"
    assert not User.objects.get(username="admin").is_superuser


def test_of_two_that_start_at_once_one_makes_the_administrator(root, monkeypatch):
    """The other one looked before it was there."""
    User.objects.filter(pk=root.pk).update(username="admin")
    exists, too_early = QuerySet.exists, [False, False]
    monkeypatch.setattr(QuerySet, "exists", lambda query: too_early.pop() if too_early else exists(query))
    assert administrator_create_first(password="the slower one's") is None
    assert User.objects.count() == 1
