"""Who guesses passwords is locked out for a while, and nobody else is."""

from base64 import b64encode
from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from analysis.http.client_ip import client_address
from analysis.models import AuditEntry
from tests.factories import make_user

pytestmark = pytest.mark.django_db

HERE, ELSEWHERE = "192.0.2.1", "192.0.2.2"
PASSWORD = "alice's password"


def log_in(name: str = "alice", password: str = PASSWORD, *, at: str = HERE, path: str = "/login/", **headers: str):
    data = {"username": name, "password": password, "next": ""}
    return Client().post(path, data, REMOTE_ADDR=at, headers=headers)


def fail(times: int, name: str = "alice", *, at: str = HERE) -> list[int]:
    return [log_in(name, "wrong", at=at).status_code for _ in range(times)]


def with_password(password: str = PASSWORD, *, at: str = HERE, path: str = "/api/v1/runs/"):
    credentials = b64encode(f"alice:{password}".encode()).decode()
    return Client().get(path, REMOTE_ADDR=at, headers={"authorization": f"Basic {credentials}"})


def test_the_fifth_failure_locks_and_then_the_right_password_is_not_tried(alice):
    assert fail(5) == [200, 200, 200, 200, 429]
    answer = log_in()
    assert answer.status_code == 429
    assert "Too many failed logins" in answer.content.decode()
    assert 0 < int(answer.headers["Retry-After"]) <= 900


def test_a_stranger_does_not_lock_the_real_person_out_elsewhere(alice):
    fail(5)
    assert log_in(at=ELSEWHERE).status_code == 302


def test_another_name_may_log_in_from_the_same_address(alice):
    make_user("bob", password="bob's password")
    fail(5)
    assert log_in("bob", "bob's password").status_code == 302


def test_an_address_that_tries_many_names_is_locked_for_all_of_them(alice, settings):
    settings.LOCKOUT_FAILURES_PER_ADDRESS = 6
    for number in range(6):
        fail(1, f"name{number}")
    assert log_in().status_code == 429
    assert log_in(at=ELSEWHERE).status_code == 302


def test_a_login_of_ones_own_does_not_clear_what_was_tried_with_other_names(alice, settings):
    settings.LOCKOUT_FAILURES_PER_ADDRESS = 4
    fail(2, "bob")
    assert log_in().status_code == 302
    fail(2, "carol")
    assert log_in().status_code == 429


def test_a_login_clears_the_failures_of_its_name(alice):
    fail(4)
    assert log_in().status_code == 302
    assert fail(4) == [200] * 4


def test_it_ends_after_a_quarter_of_an_hour_and_trying_does_not_prolong_it(alice):
    fail(8)
    assert AccessAttempt.objects.get().failures_since_start == 5
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=15, seconds=1))
    assert log_in().status_code == 302


def test_http_basic_counts_together_with_the_page(alice):
    fail(4)
    assert with_password("wrong").status_code == 429
    assert log_in().status_code == 429
    assert with_password(at=ELSEWHERE).status_code == 200


def test_the_admin_panel_has_no_login_of_its_own(alice):
    assert log_in(path="/admin/login/").headers["Location"].startswith("/login/")


def test_a_program_is_told_in_its_own_form_when_to_come_back(alice):
    fail(5)
    answer = with_password()
    assert answer.status_code == 429
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert 0 < int(answer.headers["Retry-After"]) <= 900


def test_the_classic_endpoint_keeps_its_form(alice):
    fail(5)
    answer = with_password(path="/analyze")
    assert answer.status_code == 429
    assert answer.json()["status"] == "error"


@pytest.mark.parametrize("name", ["x" * 5_000, "a\x00b"])
def test_a_name_that_nobody_can_have_is_refused_and_not_counted(db, name):
    credentials = b64encode(f"{name}:p".encode()).decode()
    answer = Client().get("/api/v1/runs/", headers={"authorization": f"Basic {credentials}"})
    assert answer.status_code == 401
    assert not AccessAttempt.objects.exists()


def test_no_password_is_stored_or_logged(alice, caplog):
    log_in(password="a secret word")
    stored = str(AccessAttempt.objects.values().get())
    assert "a secret word" not in stored + caplog.text
    assert HERE in caplog.text
    assert "alice" not in caplog.text


def test_the_administrator_unlocks_a_name(alice):
    fail(5)
    call_command("axes_reset_username", "alice")
    assert log_in().status_code == 302


@pytest.mark.parametrize(
    ("trusted", "forwarded", "expected"),
    [
        (0, "", "10.0.0.1"),
        (0, "1.1.1.1", "10.0.0.1"),
        (1, "1.1.1.1, 2.2.2.2", "2.2.2.2"),
        (1, "", "10.0.0.1"),
        (2, "1.1.1.1, 2.2.2.2, 3.3.3.3", "2.2.2.2"),
        (2, "2.2.2.2", "10.0.0.1"),
        (1, "nonsense", "10.0.0.1"),
        (1, "2001:DB8::1", "2001:db8::1"),
        (1, "::ffff:192.0.2.9", "192.0.2.9"),
    ],
)
def test_only_what_trusted_proxies_saw_is_believed(rf, settings, trusted, forwarded, expected):
    settings.TRUSTED_PROXIES = trusted
    headers = {"x-forwarded-for": forwarded} if forwarded else {}
    assert client_address(rf.get("/", REMOTE_ADDR="10.0.0.1", headers=headers)) == expected


def test_the_addresses_of_one_ipv6_network_are_counted_as_one(alice):
    for number in range(5):
        fail(1, at=f"2001:db8:1:2::{number + 1}")
    assert log_in(at="2001:db8:1:2::ffff").status_code == 429
    assert log_in(at="2001:db8:1:3::1").status_code == 302


def test_a_lock_is_in_the_audit_log_once_without_the_name(alice):
    fail(7)
    entry = AuditEntry.objects.get(action="login.lock")
    assert (entry.target_kind, entry.target_id) == ("address", HERE)
    assert "alice" not in str(AuditEntry.objects.filter(action="login.lock").values().get())


def test_a_request_over_a_unix_socket_has_no_address(rf):
    assert client_address(rf.get("/", REMOTE_ADDR="")) is None


def test_without_trusted_proxies_a_forged_forwarded_header_does_not_avoid_the_lock_out(alice):
    fail(5)
    assert log_in(**{"x-forwarded-for": "203.0.113.9"}).status_code == 429
