"""Lists come in pages that stay put, their rows say what is described, and the database is asked no more for more."""

from collections.abc import Callable

import pytest
from django.core.cache.backends.locmem import LocMemCache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from analysis.api.v1.base.serializers import RunDetailSerializer, RunSerializer
from analysis.api.v1.base.views import Keyset, PageForm
from analysis.audit.record import record
from analysis.http.query_string import BadQuery
from analysis.models import ApiToken, Device, Run, SavedView
from analysis.runs import services
from analysis.runs.queue import forecast as queue_forecast
from analysis.runs.queue.forecast import queue_positions
from tests.factories import (
    make_card,
    make_claimed_run,
    make_device,
    make_estimate,
    make_measured_run,
    make_probe,
    make_run,
    make_user,
)
from tests.factories.matrix import estimated, measured
from tests.factories.results import CARD, finished, finished_on_day

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs(alice, root) -> list[Run]:
    """One in each kind of state, with and without what can be missing."""
    card, device = make_card(), make_device("other")
    measured = make_measured_run(device, requested_by=alice)
    services.run_annotate(run_id=measured.pk, by=root, name="nightly", note="a note", tags=["paper", "a"])
    probed = make_claimed_run(card)
    services.measurement_add(run_id=probed.pk, token=probed.token, sequence=1, probe=make_probe())
    made = [measured, probed, make_run(card), make_run(card, requested_by=alice), make_estimate("a10")]
    return list(Run.objects.with_places().filter(pk__in=[run.pk for run in made]).order_by("pk"))


def test_a_row_of_a_list_has_every_member_that_is_described_as_the_run_itself_answers_it(runs, alice_client: Client):
    rows = alice_client.get("/api/v1/runs/?sort=run").json()["results"]
    assert [row["id"] for row in rows] == [run.pk for run in runs]
    assert [row["queue_position"] for row in rows] == [None, None, 2, 1, None]  # runs of nobody were served before
    assert (rows[0]["tags"], rows[0]["host"], rows[0]["requested_by"]) == (["a", "paper"], "other", "alice")
    for row in rows:
        whole = alice_client.get(f"/api/v1/runs/{row['id']}/").json()
        assert (list(row), list(whole)) == (list(RunSerializer().fields), list(RunDetailSerializer().fields))
        whole["expected_start_at"] = row["expected_start_at"]  # which is forecast from the present moment
        assert row == {name: whole[name] for name in row}


def test_a_forecast_serves_for_a_moment_and_knows_whoever_came_since(settings, monkeypatch):
    settings.QUEUE_FORECAST_KEPT_SECONDS = 60.0
    monkeypatch.setattr(queue_forecast, "cache", LocMemCache("of this test", {}))
    card = make_card()
    first, second = make_run(card), make_run(card)
    assert {pk: at.position for pk, at in queue_positions([first, second]).items()} == {first.pk: 1, second.pk: 2}
    Run.objects.filter(pk=first.pk).update(state="cancelled", finished_at=timezone.now())
    assert queue_positions([second])[second.pk].position == 2  # as it was a moment ago
    third = make_run(card)
    assert queue_positions([third])[third.pk].position == 2  # which is not in the forecast that was kept
    assert queue_positions([second])[second.pk].position == 1


class ByName:
    """A view that sorts by what is not unique."""

    ordering = ("name", "-id")

    def __init__(self, request: Request) -> None:
        self.parameters = PageForm.read(request.query_params).cleaned_data


@pytest.fixture
def views():
    owners = [make_user(name) for name in ("alice", "bob", "carol")]
    return [SavedView.objects.create(owner=owner, name=name) for name in ("a", "b") for owner in owners]


def page(query: str) -> dict:
    pages, request = Keyset(), Request(APIRequestFactory().get(f"/x/?{query}"))
    rows = pages.paginate_queryset(SavedView.objects.all(), request, ByName(request))
    return pages.get_paginated_response([row.pk for row in rows]).data


def followed(answer: dict, link: str) -> dict:
    return page(answer[link].split("?")[1])


def test_every_row_comes_once_in_order_also_where_the_order_has_equals(views):
    answer, seen = page("limit=2"), []
    while True:
        seen += answer["results"]
        if answer["next"] is None:
            break
        answer = followed(answer, "next")
    in_order = sorted(views, key=lambda view: (view.name, -view.pk))
    assert seen == [view.pk for view in in_order]


def test_the_way_back_ends_where_it_began(views):
    first = page("limit=2")
    last = followed(followed(first, "next"), "next")
    back = followed(followed(last, "previous"), "previous")
    assert (back["results"], first["previous"], back["previous"]) == (first["results"], None, None)


def test_rows_that_come_and_go_move_no_page(views):
    second = page("limit=2")["next"].split("?")[1]
    before = page(second)["results"]
    SavedView.objects.create(owner=views[0].owner, name="A")
    assert page(second)["results"] == before


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "limit=1.5", "limit=²", "after=0", "after=x", "before=1e3"])
def test_a_wrong_place_is_refused(views, query):
    with pytest.raises(BadQuery) as caught:
        page(query)
    assert [problem.parameter for problem in caught.value.problems] == [query.split("=")[0]]


def test_a_row_that_is_gone_is_no_place_to_go_on(views):
    gone = views[3].pk
    views[3].delete()
    with pytest.raises(BadQuery, match=f"saved view {gone} does not exist any more; begin at the first page"):
        page(f"after={gone}")


def more_views() -> None:
    SavedView.objects.create(owner=make_user(f"o{SavedView.objects.count()}"), name="v", query="", is_shared=True)


def more_tokens() -> None:
    number = ApiToken.objects.count()
    ApiToken.objects.create(owner=make_user(f"o{number}"), name="t", prefix="mm_r_", digest=str(number))


def more_cells() -> None:
    gpus = ("a10", "l4", "t4", "a100-40gb")
    measured(gpus[Run.objects.count() % 4])
    estimated(*gpus)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("saved-views/", more_views),
        ("tokens/?owner=all", more_tokens),
        ("audit/", lambda: record("run.cancel", target=("run", "7"))),
        ("estimates/", lambda: make_estimate()),
        ("devices/", lambda: make_card(Device.objects.count())),
        ("matrix/", more_cells),
        (f"trends/?model=bert-tiny&gpu={CARD.name}", lambda: finished_on_day(Run.objects.count())),
    ],
)
def test_a_longer_answer_needs_no_more_queries(root_client: Client, path: str, more: Callable[[], object]) -> None:
    counts = []
    for _ in range(2):
        more()
        more()
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert root_client.get(f"/api/v1/{path}").status_code == 200
        counts.append(len(asked))
    assert counts[0] == counts[1] <= 8


def test_more_runs_are_compared_with_no_more_queries(root_client: Client, django_assert_max_num_queries) -> None:
    ids = [finished().pk for _ in range(6)]
    with django_assert_max_num_queries(9):
        assert root_client.post("/api/v1/compare/", {"ids": ids}, content_type="application/json").status_code == 200
