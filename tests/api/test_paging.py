"""Lists come in pages that stay put while rows come and go."""

import pytest
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from analysis.api.v1.base.paging import Keyset, PageForm
from analysis.http.query_string import BadQuery
from analysis.models import SavedView
from tests.factories import make_user

pytestmark = pytest.mark.django_db


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
