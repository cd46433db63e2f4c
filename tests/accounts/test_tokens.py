"""Tokens: how they are made, what they are good for, what a wrong one is told; and one's own account."""

import hashlib
import html
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone

from analysis.accounts import tokens
from analysis.accounts.tokens import token_create, token_of, token_revoke
from analysis.management.commands.first_administrator import administrator_create_first
from analysis.models import ApiToken, AuditEntry, Quota, Trust
from analysis.permissions import MANAGER, VIEWER
from engine.errors import SpecError
from tests.factories import make_device, make_run, make_user
from tests.factories.pages import words

pytestmark = pytest.mark.django_db

RUNS = "/api/v1/runs/"


def made(owner, *, may_write=False, **columns) -> tuple[ApiToken, str]:
    return token_create(owner=owner, **{"name": "CI", "may_write": may_write, "expires_at": None, **columns})


def get(secret: str, path: str = RUNS, scheme: str = "Bearer"):
    return Client().get(path, headers={"authorization": f"{scheme} {secret}"})


def post(secret: str):
    return Client().post(
        RUNS, '{"model": "bert-tiny"}', content_type="application/json", headers={"authorization": f"Bearer {secret}"}
    )


def test_a_secret_has_its_kind_in_front_and_256_random_bits(alice):
    assert made(alice)[1].startswith("mm_r_")
    token, secret = made(alice, may_write=True)
    assert secret.startswith("mm_w_")
    assert len(secret.removeprefix("mm_w_")) == 43
    assert secret.startswith(token.prefix)


def test_of_a_secret_only_its_digest_is_stored(alice):
    token, secret = made(alice)
    stored = ApiToken.objects.filter(pk=token.pk).values().get()
    assert stored["digest"] == hashlib.sha256(secret.encode()).hexdigest()
    assert not [name for name, value in stored.items() if secret in str(value)]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "Token"])
def test_a_token_reads(alice, scheme):
    assert get(made(alice)[1], scheme=scheme).status_code == 200


def test_a_token_that_only_reads_starts_nothing_and_says_why(alice):
    make_device()
    answer = post(made(alice)[1])
    assert answer.status_code == 403
    assert "can only read" in answer.content.decode()


def test_a_token_that_writes_starts_a_run_of_its_owner_and_needs_no_csrf_token(alice):
    make_device()
    strict = Client(enforce_csrf_checks=True)
    secret = made(alice, may_write=True)[1]
    body = '{"model": "bert-tiny"}'
    headers = {"authorization": f"Bearer {secret}"}
    assert strict.post(RUNS, body, content_type="application/json", headers=headers).status_code == 202
    assert alice.runs.count() == 1


def test_a_token_never_gives_more_than_its_owner_may():
    make_device()
    assert post(made(make_user("v", VIEWER), may_write=True)[1]).status_code == 403
    assert get(made(make_user("n", None))[1]).status_code == 403


def spoil_revoked(token: ApiToken) -> None:
    token_revoke(token_id=token.pk, by=token.owner)


def spoil_ended(token: ApiToken) -> None:
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now() - timedelta(seconds=1))


def spoil_owner(token: ApiToken) -> None:
    token.owner.is_active = False
    token.owner.save()


@pytest.mark.parametrize("spoil", [spoil_revoked, spoil_ended, spoil_owner, ApiToken.delete])
def test_every_refusal_is_the_same_whatever_the_reason(alice, spoil):
    token, secret = made(alice)
    spoil(token)
    answer, of_nonsense = get(secret), get("mm_r_nonsense")
    assert answer.status_code == of_nonsense.status_code == 401
    assert answer.json()["detail"] == of_nonsense.json()["detail"]
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("secret", ["", " ", "é", "x" * 10_000, "mm_w_ mm_w_"])
def test_nonsense_is_no_token(secret):
    assert get(secret).status_code == 401


def test_a_token_is_found_with_one_question(alice, django_assert_num_queries):
    _, secret = made(alice)
    with django_assert_num_queries(1):
        assert token_of(secret).owner.username == "alice"


def test_the_last_use_is_written_once_a_minute(alice, django_assert_num_queries):
    token, secret = made(alice)
    get(secret)
    used = token_of(secret)
    assert used.last_used_at is not None
    with django_assert_num_queries(0):
        tokens.token_note_use(used, "192.0.2.7")
    ApiToken.objects.update(last_used_at=timezone.now() - timedelta(seconds=61))
    get(secret)
    token.refresh_from_db()
    assert timezone.now() - token.last_used_at < timedelta(seconds=30)


def test_the_address_of_the_last_use_is_kept_and_shown_to_its_owner(alice, alice_client):
    token, secret = made(alice)
    get(secret)
    token.refresh_from_db()
    assert token.last_used_address == "127.0.0.1"
    assert alice_client.get(f"/api/v1/tokens/{token.pk}/").json()["last_used_address"] == "127.0.0.1"
    page = alice_client.get("/account/", headers={"accept": "text/html"}).content.decode()
    assert "from 127.0.0.1" in page


def test_a_second_process_does_not_write_the_same_minute_again(alice):
    token, _ = made(alice)
    ApiToken.objects.update(last_used_at=(just_now := timezone.now() - timedelta(seconds=5)))
    tokens.token_note_use(token, "192.0.2.7")  # read before the other process wrote
    token.refresh_from_db()
    assert token.last_used_at == just_now


def test_one_revokes_ones_own_and_a_manager_anybodys_once(alice):
    mine, other = made(alice)[0], made(alice)[0]
    bob, manager = make_user("bob"), make_user("m", MANAGER)
    assert not token_revoke(token_id=mine.pk, by=bob)
    assert token_revoke(token_id=mine.pk, by=alice)
    assert not token_revoke(token_id=mine.pk, by=alice)
    assert token_revoke(token_id=other.pk, by=manager)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 101])
def test_a_token_says_what_it_is_for(alice, name):
    with pytest.raises(SpecError) as refused:
        made(alice, name=name)
    assert refused.value.field == "name"


def test_a_token_cannot_end_before_it_begins(alice):
    with pytest.raises(SpecError, match="future"):
        made(alice, expires_at=timezone.now())


def test_nobody_keeps_more_tokens_than_the_limit_and_a_revoked_one_frees_its_place(alice, monkeypatch):
    monkeypatch.setattr(tokens, "TOKENS_PER_PERSON", 2)
    first = made(alice)[0]
    made(alice)
    with pytest.raises(SpecError, match="revoke one first"):
        made(alice)
    token_revoke(token_id=first.pk, by=alice)
    assert made(alice)[0].pk


def test_the_metrics_take_the_token_of_whoever_may_read(alice, settings):
    settings.METRICS_TOKEN = "scraper"
    assert get(made(alice)[1], "/metrics").status_code == 200
    assert get("scraper", "/metrics").status_code == 200
    assert get(made(make_user("n", None))[1], "/metrics").status_code == 403
    assert get("mm_r_wrong", "/metrics").status_code == 401


def post_report(secret: str):
    body = {
        "run_key": "0" * 32,
        "kind": "measurement",
        "host": "node-7",
        "spec": {"model": "bert-tiny", "device": "cpu"},
    }
    return Client().post(
        "/api/v1/reports/", body, content_type="application/json", headers={"authorization": f"Bearer {secret}"}
    )


def test_a_token_that_only_reports_announces_a_run_and_is_refused_everywhere_else(alice):
    make_device()
    token, secret = made(alice, only_reports=True)
    assert secret.startswith("mm_p_")
    assert token.only_reports
    assert post_report(secret).status_code == 201
    runs_before = alice.runs.count()
    refused = [post(secret), *(get(secret, path) for path in (RUNS, "/api/v1/tokens/", "/api/v1/", "/metrics"))]
    assert [answer.status_code for answer in refused] == [403] * 5
    assert all("can only report runs" in answer.content.decode() for answer in refused)
    assert refused[0].json()["code"] == "token_only_reports"
    assert alice.runs.count() == runs_before


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
    assert "Runs waiting 1 of 3 Measurements started in 24 hours 1 (no limit) Longest time budget 10 min" in text


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
