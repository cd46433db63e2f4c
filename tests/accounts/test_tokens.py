"""Tokens: how they are made, what they are good for, and what everybody is told who shows a wrong one."""

import hashlib
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from analysis.accounts import tokens
from analysis.accounts.tokens import token_create, token_of, token_revoke
from analysis.models import ApiToken
from analysis.permissions import MANAGER, VIEWER
from engine.errors import SpecError
from tests.factories import make_device, make_user

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


def test_a_token_that_writes_starts_a_run_of_its_owner(alice):
    make_device()
    assert post(made(alice, may_write=True)[1]).status_code == 202
    assert alice.runs.count() == 1


def test_a_token_needs_no_csrf_token(alice):
    make_device()
    strict = Client(enforce_csrf_checks=True)
    secret = made(alice, may_write=True)[1]
    body = '{"model": "bert-tiny"}'
    headers = {"authorization": f"Bearer {secret}"}
    assert strict.post(RUNS, body, content_type="application/json", headers=headers).status_code == 202


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
