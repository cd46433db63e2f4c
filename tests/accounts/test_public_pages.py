"""MEMORYMARK_PUBLIC_READ_ONLY: what anybody may read then, and what stays inside."""

import pytest
from django.test import Client

from analysis.models import GpuPrice, Run
from analysis.runs import services
from tests.factories import make_device, make_measured_run, make_run, make_user
from tests.factories.pages import words

pytestmark = pytest.mark.django_db

OPEN = ["/", "/estimates/", "/matrix/"]
CLOSED = [
    *("/runs/", "/runs/export.csv", "/runs/export.json", "/trend/", "/fleet/", "/fleet/now/", "/devices/"),
    "/account/",
]
SECRETS = ("alice", "paper-7", "do not tell", "shelf-3", "secret-host")


@pytest.fixture
def run(alice, settings) -> Run:
    settings.PUBLIC_READ_ONLY = True
    run = make_measured_run(make_device("secret-host"), stack={"host": "secret-host"})
    Run.objects.update(requested_by=alice)
    services.run_annotate(run_id=run.pk, by=alice, name="paper-7", note="do not tell", tags=["shelf-3"])
    return run


def browser() -> Client:
    return Client(headers={"accept": "text/html"})


def test_the_setting_is_off_unless_it_is_set(db):
    assert [browser().get(path).status_code for path in OPEN] == [302] * len(OPEN)


def test_guests_read_pages_and_no_name_note_tag_or_host(run):
    for path in (*OPEN, run.get_absolute_url()):
        answer = browser().get(path)
        assert answer.status_code == 200, path
        assert [secret for secret in SECRETS if secret in answer.content.decode()] == [], path


def test_guests_read_that_a_run_was_reported_and_not_verified_but_not_by_whom_from_where(run, root):
    sender = {"reported_from": "secret-host", "is_trusted": False}
    Run.objects.update(**sender)
    for path in ("/", run.get_absolute_url(), f"{run.get_absolute_url()}advice/"):
        text = browser().get(path).content.decode()
        assert "reported, not trusted" in words(text), path
        assert [secret for secret in SECRETS if secret in text] == [], path


@pytest.mark.parametrize("path", CLOSED)
def test_exports_lists_and_the_fleet_stay_inside(run, path):
    assert Client().get(path).headers["Location"].startswith("/login/")


@pytest.mark.parametrize("rest", ["export.json", "export.csv", "live/"])
def test_of_a_run_the_page_alone_is_open(run, rest):
    assert Client().get(f"{run.get_absolute_url()}{rest}").status_code == 302


def test_a_run_without_an_answer_stays_inside(run):
    waiting = make_run(run.requested_device)
    assert Client().get(waiting.get_absolute_url()).headers["Location"].startswith("/login/")


def test_an_account_without_a_role_reads_what_everybody_may_and_no_more(run):
    client, waiting = Client(headers={"accept": "text/html"}), make_run(run.requested_device)
    client.force_login(make_user("nora", None))
    assert [client.get(path).status_code for path in (*OPEN, run.get_absolute_url())] == [200] * 4
    assert [client.get(path).status_code for path in ("/runs/", waiting.get_absolute_url())] == [403] * 2
    assert "do not tell" not in client.get(run.get_absolute_url()).content.decode()


def test_of_the_labs_own_prices_the_source_stays_inside(run):
    GpuPrice.objects.create(gpu="a10", price_per_hour_usd=1.0, source="offer of Mr. X", valid_from="2026-01-02")
    text = Client().get("/matrix/").content.decode()
    assert "$1.00" in text
    assert "Mr. X" not in text


def test_the_api_stays_inside(run):
    for path in ("/api/v1/runs/", f"/api/v1/runs/{run.pk}/", "/metrics"):
        assert Client().get(path).status_code == 401, path


def test_guests_change_nothing_and_are_offered_nothing(run):
    assert Client().post("/runs/new/", {}).status_code == 302
    assert Client().post("/").status_code == 405
    text = browser().get("/").content.decode()
    assert "<form" not in text
    assert "Log in" in words(text)
