"""Runs in groups and in pages: what a heading says, complete, without doubles, and in order."""

import re

import pytest
from django.http import QueryDict
from django.test import Client

from analysis.lists.runs import groups
from analysis.lists.runs.columns import COLUMNS
from analysis.lists.runs.query import parse_query
from analysis.models import Run
from analysis.models.keyset import Page
from analysis.runs import services
from tests.factories import make_device
from tests.factories.history import store
from tests.factories.pages import words

pytestmark = pytest.mark.django_db

SCRIPT = {"command": ["python", "mine.py", "{batch_size}"], "name": "mine.py"}


def headings(client: Client, query: str) -> list[str]:
    response = client.get(f"/runs/?{query}")
    assert response.status_code == 200
    found = re.findall(r'<th scope="rowgroup".*?</th>', response.content.decode(), re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", heading).split()) for heading in found]


def test_a_heading_says_how_many_runs_the_best_size_and_the_largest_waste(alice_client: Client) -> None:
    store(2, model="gpt2", recommended_batch_size=lambda n: 6 + n, current_waste_bytes=lambda n: (n + 1) * 2**30)
    store(model="bert")
    assert headings(alice_client, "group_by=model") == [
        "GPT-2 small 2 runs recommended up to 7 largest waste 2.0 GiB",
        "BERT base 1 run",
    ]


def test_filters_and_order_hold_in_groups_too(alice_client: Client) -> None:
    store(model="gpt2", largest_batch_size=3), store(model="bert", largest_batch_size=9), store(state="failed")
    query = "group_by=model&state=finished&sort=-largest"
    assert headings(alice_client, query) == [
        "BERT base 1 run",
        "GPT-2 small 1 run",
    ]


def test_runs_are_grouped_by_device_person_gpu_script_and_tag(alice_client: Client, alice, root) -> None:
    device = make_device("lab", device="cuda:3", kind="cuda")
    runs = store(1, device=device, device_name="NVIDIA A10", requested_by=alice)
    runs += store(1, kind="command", model="mine.py", spec=SCRIPT)
    services.runs_tag(run_ids=[runs[0].pk], by=root, tag="paper")
    services.runs_tag(run_ids=[runs[0].pk], by=root, tag="sweep")
    assert headings(alice_client, "group_by=device") == ["On no device 1 run", "lab cuda:3 1 run"]
    assert headings(alice_client, "group_by=gpu") == ["No GPU 1 run", "A10 1 run"]
    assert headings(alice_client, "group_by=person") == ["No person 1 run", "alice 1 run"]
    assert headings(alice_client, "group_by=script") == ["mine.py 1 run", "Models of the catalogue 1 run"]
    assert headings(alice_client, "group_by=tag") == ["Without a tag 1 run", "paper 1 run", "sweep 1 run"]


@pytest.mark.parametrize("by", ["model", "gpu", "device", "person", "script", "tag"])
def test_the_name_of_a_group_leads_to_exactly_its_runs(alice_client: Client, alice, root, by: str) -> None:
    device = make_device()
    runs = store(
        7, device=device, device_name="NVIDIA A10", requested_by=alice, kind="command", model="mine.py", spec=SCRIPT
    )
    services.runs_tag(run_ids=[run.pk for run in runs], by=root, tag="paper")
    store(model="gpt2")
    html = alice_client.get(f"/runs/?group_by={by}").content.decode()
    (address,) = (
        link
        for link in re.findall(r'<th scope="rowgroup"\s+colspan="\d+"><a href="(\?[^"]+)"', html)
        if "gpt2" not in link
    )
    rows = re.findall(
        r'<th scope="row"[^>]*><a href="/runs/(\d+)/', alice_client.get(f"/runs/{address}").content.decode()
    )
    assert sorted(map(int, rows)) == sorted(run.pk for run in runs)


def test_a_group_shows_a_few_runs_and_the_page_no_more_than_a_page(alice_client: Client) -> None:
    for number in range(12):
        store(6, model=f"model-{number}")
    html = alice_client.get("/runs/?group_by=model").content.decode()
    assert len(headings(alice_client, "group_by=model")) == 12
    assert html.count('name="run" value=') == groups.SHOWN_MAX


def test_only_the_first_runs_are_grouped_and_the_page_says_so(alice_client: Client, monkeypatch) -> None:
    monkeypatch.setattr("analysis.lists.runs.query.GROUPED_MAX", 3)
    store(5, model="gpt2")
    assert headings(alice_client, "group_by=model") == ["GPT-2 small 3 runs"]
    assert "The first 3 runs of this list in groups" in words(
        alice_client.get("/runs/?group_by=model").content.decode()
    )


def test_an_unknown_grouping_is_refused_with_what_there_is(alice_client: Client) -> None:
    response = alice_client.get("/runs/?group_by=mood")
    assert response.status_code == 400
    assert "must be one of model, gpu, device, person, script, tag" in response.content.decode()


@pytest.mark.parametrize("by", ["model", "device", "person", "tag"])
def test_groups_ask_the_database_as_often_for_60_runs_as_for_two(
    alice_client: Client, root, django_assert_max_num_queries, by: str
) -> None:
    made = store(2, model="gpt2")
    services.runs_tag(run_ids=[run.pk for run in made], by=root, tag="nightly")
    with django_assert_max_num_queries(15):
        headings(alice_client, f"group_by={by}")
    store(58, model=lambda n: f"model-{n % 9}")
    with django_assert_max_num_queries(15) as asked:
        headings(alice_client, f"group_by={by}")
    assert not [query for query in asked.captured_queries if '"result"' in query["sql"]]


def test_the_export_takes_no_notice_of_groups(alice_client: Client) -> None:
    store()
    html = alice_client.get("/runs/?group_by=model&state=finished").content.decode()
    assert 'href="/runs/export.csv?state=finished"' in html


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
