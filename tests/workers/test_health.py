"""Ready or not, in words: the database, the workers, the queue; and the banner on the pages."""

from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import OperationalError, connection
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.utils import timezone

from analysis.models import Attempt, Run, Throttle
from analysis.pages.frame import frame
from analysis.workers import health
from analysis.workers.health import WRITE_EVERY_SECONDS, alarm_of_dead_workers, readiness, run_left_lying
from engine.text.units import MIB
from tests.factories import make_card, make_claimed_run, make_run, make_run_of_several

pytestmark = pytest.mark.django_db

PATH = "/readyz"


def ago(seconds: float):
    return timezone.now() - timedelta(seconds=seconds)


def make_old_run(device, seconds: float = 300, **columns) -> Run:
    run = make_run(device)
    Run.objects.filter(pk=run.pk).update(created_at=ago(seconds), **columns)
    return run


def test_a_live_worker_and_an_empty_queue_are_ready(client):
    make_card()
    answer = client.get(PATH)
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    assert {name: check["ok"] for name, check in answer.json()["checks"].items()} == {
        "database": True,
        "disk": True,
        "worker": True,
        "queue": True,
    }


def test_no_login_and_any_accept_header_will_do(client):
    make_card()
    assert client.get(PATH, headers={"Accept": "text/plain"}).status_code == 200


@pytest.mark.parametrize("columns", [{"last_seen_at": None}, {"last_seen_at": ago(90)}, {"enabled": False}])
def test_without_a_live_worker_of_an_enabled_device_it_is_not_ready(client, columns):
    make_card(**columns)
    answer = client.get(PATH)
    assert answer.status_code == 503
    assert "No enabled device" in answer.json()["checks"]["worker"]["message"]


def test_that_an_idle_device_leaves_a_run_lying_is_said_and_not_which(client):
    make_old_run(make_card())
    answer = client.get(PATH)
    assert answer.status_code == 503
    assert "A run has waited more than 120 s" in answer.json()["checks"]["queue"]["message"]


def test_a_run_that_just_came_is_given_its_time():
    make_old_run(make_card(), seconds=60)
    assert readiness().is_ready


@pytest.mark.parametrize("columns", [{"drained": True}, {"maintenance_from": ago(60)}, {"last_seen_at": ago(90)}])
def test_a_run_whose_device_takes_none_now_may_wait(columns):
    device = make_card()
    make_old_run(device)
    type(device).objects.filter(pk=device.pk).update(**columns)
    assert readiness().checks["queue"].ok


def test_a_run_whose_device_is_busy_may_wait():
    device = make_card()
    make_claimed_run(device)
    make_old_run(device)
    assert readiness().is_ready


def test_a_device_that_ended_a_run_a_moment_ago_is_about_to_look():
    device = make_card()
    run = make_old_run(device)
    Attempt.objects.create(run=run, number=1, device=device, owner="w", started_at=ago(60), ended_at=ago(5))
    assert readiness().is_ready


def test_a_device_that_is_reserved_for_a_run_of_several_leaves_none_lying():
    idle, busy = make_card(0, uuid="GPU-0"), make_card(1, uuid="GPU-1")
    under_way = make_claimed_run(busy)
    several = make_run_of_several(2)
    Run.objects.filter(pk=several.pk).update(created_at=ago(300))
    make_old_run(idle)
    assert readiness().checks["queue"].ok
    Run.objects.filter(pk=under_way.pk).update(state="finished")
    assert run_left_lying() == several.pk


def test_a_run_for_any_card_of_a_class_is_left_lying_by_a_card_of_that_class_alone():
    anywhere = {"requested_device": None, "requested_kind": "cuda", "requested_device_class": "H100"}
    run = make_old_run(make_card(), **anywhere)
    assert readiness().is_ready
    Run.objects.filter(pk=run.pk).update(requested_device_class="a100")
    assert not readiness().checks["queue"].ok


def test_a_run_that_needs_more_memory_than_the_idle_device_has_may_wait():
    device = make_card()
    anywhere = {"requested_device": None, "requested_kind": "cuda"}
    make_old_run(device, needs_bytes=device.capacity_bytes + 1, **anywhere)
    assert readiness().is_ready


def test_the_check_costs_a_bounded_number_of_queries(django_assert_max_num_queries):
    for number in range(5):
        make_old_run(make_card(number), state="cancelled")
    readiness()  # the probe of a write makes its row
    with django_assert_max_num_queries(6):
        readiness()


@pytest.mark.django_db(transaction=True)
def test_a_database_that_answers_but_takes_no_write_is_not_ready(client):
    """As on a full disk: reading alone would say that all is well."""
    make_card()
    with writes_refused():
        answer = client.get(PATH)
        assert client.get(PATH).status_code == 503  # also when asked again at once
    assert answer.status_code == 503
    assert answer.json()["checks"]["database"] == {
        "ok": False,
        "message": "The database answers but takes no write; the web server's log says why.",
    }
    assert client.get(PATH).status_code == 200


@contextmanager
def writes_refused():
    is_sqlite = connection.vendor == "sqlite"
    refuse, allow = ("PRAGMA query_only = {}", "SET default_transaction_read_only = {}")[not is_sqlite], ("on", "off")
    with connection.cursor() as cursor:
        cursor.execute(refuse.format(allow[0]))
        try:
            yield
        finally:
            cursor.execute(refuse.format(allow[1]))


def test_writes_are_probed_now_and_then_however_often_it_is_asked():
    """Everybody may ask, so asking must not cost a write each time."""
    make_card()
    readiness()
    written = Throttle.objects.get(scope="readyz").free_at_seconds
    readiness()
    assert Throttle.objects.get(scope="readyz").free_at_seconds == written
    Throttle.objects.update(free_at_seconds=written - WRITE_EVERY_SECONDS - 1)
    readiness()
    assert Throttle.objects.get(scope="readyz").free_at_seconds > written - 1


@pytest.mark.parametrize(("free", "ok"), [(10 * MIB, False), (10_000 * MIB, True)])
def test_a_data_folder_without_room_is_not_ready_before_the_first_write_fails(monkeypatch, free, ok):
    make_card()
    monkeypatch.setattr(health.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    assert readiness().is_ready == ok
    assert readiness().checks["disk"].ok == ok


def test_a_database_that_is_away_is_an_answer_and_no_traceback(client, monkeypatch):
    def refuse(*args, **kwargs):
        raise OperationalError("connection to server at 10.0.0.9 failed")

    monkeypatch.setattr("analysis.workers.health.connection.cursor", refuse)
    answer = client.get(PATH)
    assert answer.status_code == 503
    assert answer.json()["checks"]["database"] == {
        "ok": False,
        "message": "The database does not answer; the web server's log says why.",
    }
    assert "10.0.0.9" not in answer.text


def test_the_alarm_is_silent_while_one_worker_lives():
    make_card(0, last_seen_at=ago(900))
    make_card(1)
    assert alarm_of_dead_workers() is None


def test_the_alarm_says_since_when(django_assert_num_queries):
    seen = ago(900)
    make_card(last_seen_at=seen)
    with django_assert_num_queries(1):
        assert alarm_of_dead_workers().since == seen


def test_a_fleet_that_never_reported_raises_the_alarm():
    assert alarm_of_dead_workers().since is None


def test_the_banner_says_what_it_means_since_when_and_what_to_do():
    make_card(last_seen_at=ago(900))
    page = render_to_string("analysis/parts/fleet/alarm.html", {"fleet_alarm": alarm_of_dead_workers})
    assert "waiting runs will not start" in page
    assert "15\xa0minutes ago" in page
    assert "python manage.py up" in page
    assert 'role="alert"' in page


def test_the_banner_is_on_the_page_of_who_is_signed_in_and_not_on_the_login(alice_client, client):
    text = "No worker is alive"
    assert text in alice_client.get("/runs/").text
    assert text not in client.get("/login/").text


def test_strangers_and_polled_fragments_ask_the_database_nothing(alice):
    request = RequestFactory().get("/")
    request.user, request.htmx = AnonymousUser(), False
    assert frame(request)["fleet_alarm"] is None
    request.user, request.htmx = alice, True
    assert frame(request)["fleet_alarm"] is None
