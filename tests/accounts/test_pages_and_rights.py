"""What each role may open and do on the pages, and what a page offers her."""

import pytest
from django.test import Client

from analysis.models import Run, State
from analysis.permissions import MANAGER, OPERATOR, VIEWER
from tests.factories import make_device, make_measured_run, make_run, make_user
from tests.factories.pages import page, words

pytestmark = pytest.mark.django_db


def client_of(role: str | None, name: str = "p") -> Client:
    client = Client(headers={"accept": "text/html"})
    client.force_login(make_user(name, role))
    return client


READ_PAGES = ["/", "/runs/", "/estimates/", "/matrix/", "/trend/", "/fleet/", "/devices/", "/runs/export.csv"]


@pytest.mark.parametrize("path", READ_PAGES)
def test_a_page_is_for_whoever_may_read(path):
    assert client_of(VIEWER, "v").get(path).status_code == 200
    assert client_of(None, "n").get(path).status_code == 403
    assert Client(headers={"accept": "text/html"}).get(path).status_code == 302


@pytest.mark.parametrize(("path", "data"), [("/runs/new/", {}), ("/runs/change/", {"action": "cancel"})])
def test_a_viewer_is_refused_by_the_name_of_the_role_that_she_lacks(path, data):
    answer = client_of(VIEWER).post(path, data)
    assert answer.status_code == 403
    assert "lacks the role operator" in words(answer.content.decode())


def test_a_viewer_may_compare_the_runs_she_ticked():
    run = make_run()
    answer = client_of(VIEWER).post("/runs/change/", {"action": "compare", "run": str(run.pk)})
    assert answer.headers["Location"] == f"/compare/?ids={run.pk}"


def test_an_operator_cancels_her_own_run_and_no_other(alice, alice_client):
    device = make_device()
    own, other = make_run(device, requested_by=alice), make_run(device, requested_by=make_user("bob"))
    answer = alice_client.post(f"/runs/{other.pk}/cancel/", follow=True)
    assert "Only the person who started a run, or a GPU manager, may cancel it." in words(answer.content.decode())
    alice_client.post(f"/runs/{own.pk}/cancel/")
    assert dict(Run.objects.values_list("pk", "state")) == {own.pk: State.CANCELLED, other.pk: State.QUEUED}


@pytest.mark.parametrize(("role", "is_offered"), [(VIEWER, False), (OPERATOR, True)])
def test_what_may_not_be_done_is_not_offered(role, is_offered):
    client, run = client_of(role), make_measured_run(make_device())
    assert ("Find the largest batch size" in client.get("/").content.decode()) is is_offered
    assert (">Run again<" in page(client, run)) is is_offered
    assert ('value="retry"' in client.get("/runs/").content.decode()) is is_offered


def test_a_viewer_is_told_what_she_may_do_instead():
    assert "You can view everything here" in words(client_of(VIEWER).get("/").content.decode())


def test_cancel_is_offered_to_whoever_may_do_it(alice, alice_client):
    run = make_run(requested_by=alice)
    assert ">Cancel<" in page(alice_client, run)
    assert ">Cancel<" in page(client_of(MANAGER, "m"), run)
    assert ">Cancel<" not in page(client_of(OPERATOR, "bob"), run)


def test_a_refused_page_names_the_role_and_the_account_page_is_open_to_everybody():
    client = client_of(None)
    text = words(client.get("/runs/").content.decode())
    assert "Your account lacks the role viewer. A GPU manager can give it to you." in text
    assert client.get("/account/").status_code == 200
    assert client.post("/logout/").status_code == 302
