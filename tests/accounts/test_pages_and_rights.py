"""What each role may open and do on the pages, and what a page offers her."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver

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


CHANGES = [
    ("/runs/new/", {}),
    ("/runs/change/", {"action": "cancel", "run": "{run}"}),
    ("/runs/views/", {"name": "mine"}),
    ("/runs/views/1/delete/", {}),
    ("/runs/{run}/annotate/", {"name": "mine"}),
    ("/runs/{run}/cancel/", {}),
    ("/runs/{run}/repeat/", {}),
    ("/runs/{run}/race/", {}),
    ("/runs/{run}/pin/", {"pin": "1"}),
    ("/trend/acknowledge/{run}/", {"note": "x"}),
    ("/runs/outlook/", {}),
    ("/estimates/", {"model": "bert", "gpu": "a10"}),
    ("/validations/new/", {}),
    ("/what-to-change/", {}),
    ("/runs/{run}/what-to-change/", {}),
    ("/runs/{run}/measure-changes/", {}),
    ("/runs/{run}/share/", {"days": "7"}),
    ("/share-links/1/withdraw/", {}),
]


@pytest.mark.parametrize(("path", "data"), CHANGES)
def test_a_viewer_changes_nothing(path, data):
    run = make_run()
    before = Run.objects.values().get()
    answer = client_of(VIEWER).post(path.format(run=run.pk), {k: v.format(run=run.pk) for k, v in data.items()})
    assert answer.status_code == 403
    assert "lacks the role operator" in words(answer.content.decode())
    assert Run.objects.values().get() == before


def test_every_page_that_takes_a_post_is_tried_above():
    names = {"{run}": "<int:run_id>", "views/1/": "views/<int:view_id>/", "links/1/": "links/<int:link_id>/"}
    tried = {reduce(lambda path, name: path.replace(*name), names.items(), path) for path, _ in CHANGES}
    takes_post = {f"/{route}" for route, view in pages() if "POST" in methods_of(view)}
    of_everybody = {path for path in takes_post if path.startswith("/account/")}  # their own tokens and notifications
    assert takes_post - tried - of_everybody == {"/commands/<str:name>/"}


def pages(patterns: Any = None, before: str = "") -> list[tuple[str, Any]]:
    found = []
    for pattern in patterns or get_resolver().url_patterns:
        route = before + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            found += pages(pattern.url_patterns, route)
        elif not hasattr(pattern.callback, "cls") and not hasattr(pattern.callback, "view_class"):
            found.append((route, pattern.callback))
    return [(route, view) for route, view in found if not route.startswith(("admin/", "api/"))]


def methods_of(view: Any) -> tuple[str, ...]:
    while view is not None:
        for cell in getattr(view, "__closure__", None) or ():
            if isinstance(cell.cell_contents, list) and set(cell.cell_contents) <= {"GET", "HEAD", "POST"}:
                return tuple(cell.cell_contents)
        view = getattr(view, "__wrapped__", None)
    return ()


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


def test_a_gpu_manager_cancels_any(alice):
    run = make_run(requested_by=alice)
    client_of(MANAGER).post(f"/runs/{run.pk}/cancel/")
    assert Run.objects.get().state == State.CANCELLED


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


def test_a_program_without_the_role_is_refused_by_the_classic_endpoint_too(settings):
    settings.SERVES_THIS_MACHINE_ONLY = True
    make_device()
    client, body = client_of(VIEWER), {"model_name": "bert"}
    answer = client.post("/analyze", body, content_type="application/json", headers={"accept": "*/*"})
    assert answer.status_code == 403
    assert answer.json()["status"] == "error"
