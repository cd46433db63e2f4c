"""Pages of runs: complete, without doubles, and in order; `tests/api/test_paging.py` has what holds of every list."""

import pytest
from django.http import QueryDict

from analysis.lists.runs.columns import COLUMNS
from analysis.lists.runs.query import parse_query
from analysis.models import Run
from analysis.models.keyset import Page
from analysis.runs import services
from tests.factories.history import store

pytestmark = pytest.mark.django_db

SORTS = [f"{sign}{column.key}" for column in COLUMNS.values() if column.order for sign in ("", "-")]


def page_of(sort: str = "-created", size: int = 4, **place: int | None) -> Page[Run]:
    return parse_query(QueryDict(f"sort={sort}")).page(size, **place)


def walk(sort: str) -> list[int]:
    found, after = [], None
    while True:
        page = page_of(sort, after=after)
        found += [run.pk for run in page.rows]
        if page.following is None:
            return found
        after = page.following


@pytest.fixture
def varied(alice):
    """Ties, gaps, and values that are missing."""
    return store(
        15,
        model=lambda n: ("bert", "gpt2")[n % 2],
        device_name=lambda n: ("", "L4", "A100")[n % 3],
        largest_batch_size=lambda n: None if n % 4 == 0 else n // 3,
        speedup=lambda n: None if n % 5 else 1.5,
        requested_by=lambda n: alice if n % 3 else None,
        name=lambda n: "" if n % 2 else f"run {n % 4}",
    )


@pytest.mark.parametrize("sort", SORTS)
def test_the_pages_hold_every_run_once_in_either_direction(varied, sort):
    assert sorted(walk(sort)) == sorted(run.pk for run in varied)


@pytest.mark.parametrize("sort", SORTS)
def test_going_back_gives_the_page_that_was_before(varied, sort):
    first = page_of(sort)
    second = page_of(sort, after=first.following)
    third = page_of(sort, after=second.following)
    back = page_of(sort, before=third.preceding)
    assert [run.pk for run in back.rows] == [run.pk for run in second.rows]


@pytest.mark.parametrize("sort", ["largest", "-largest"])
def test_runs_without_the_figure_come_last_in_both_directions(varied, sort):
    sizes = dict(Run.objects.values_list("pk", "largest_batch_size"))
    shown = [sizes[pk] for pk in walk(sort)]
    known = [size for size in shown if size is not None]
    assert shown[len(known) :] == [None] * 4
    assert known == sorted(known, reverse=sort.startswith("-"))


def test_a_page_goes_on_after_a_run_that_was_deleted(root):
    runs = store(6)
    services.runs_delete(run_ids=[runs[3].pk], by=root)
    page = page_of(size=2, after=runs[3].pk)
    assert [run.pk for run in page.rows] == [runs[2].pk, runs[1].pk]


def test_going_back_past_the_beginning_gives_a_full_first_page():
    runs = store(6)
    page = page_of(before=runs[4].pk)
    assert [run.pk for run in page.rows] == [run.pk for run in reversed(runs[2:])]
    assert page.preceding is None
