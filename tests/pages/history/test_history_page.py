"""The page: what it shows, what it refuses, what its forms do, and how often it asks the database."""

import re
from typing import Any

import pytest
from django.test import Client

from analysis.models import Run, SavedView
from analysis.permissions import VIEWER
from analysis.runs import services
from engine.text.units import GIB
from tests.factories import (
    make_claimed_run,
    make_device,
    make_result,
    make_result_that_does_not_fit,
    make_run,
    make_user,
)
from tests.factories.history import store
from tests.factories.pages import words

pytestmark = pytest.mark.django_db


def page(client: Client, query: str = "", status: int = 200) -> str:
    response = client.get(f"/runs/{query}", headers={"accept": "text/html"})
    assert response.status_code == status, response.status_code
    return response.content.decode()


def numbers(text: str) -> list[int]:
    return [int(pk) for pk in re.findall(r'<th scope="row"[^>]*><a href="/runs/(\d+)/">', text)]


def test_no_runs_yet_says_how_to_get_the_first(alice_client):
    text = page(alice_client)
    assert "Start the first run" in text
    assert "memorymark tune --report-to http://testserver" in text


def test_no_match_says_which_filters_and_how_to_clear_them(alice_client):
    store()
    text = page(alice_client, "?state=failed&model=gpt2")
    assert "No run matches <b>Model: GPT-2 small</b> and <b>State: Failed</b>" in text
    assert 'href="/runs/">Clear filters' in text


def test_a_mistyped_parameter_shows_no_runs_and_what_there_is(alice_client):
    store()
    text = page(alice_client, "?modell=bert", status=400)
    assert "modell: there is no such parameter" in text
    assert not numbers(text)


def test_what_a_form_leaves_empty_is_left_out_of_the_address(alice_client):
    response = alice_client.get("/runs/?model=&q=&state=failed&sort=-largest")
    assert response.url == "/runs/?state=failed&sort=-largest"


def test_the_filters_are_folded_the_search_is_not_and_what_is_set_has_a_chip(alice_client):
    store()
    text = page(alice_client, "?state=finished&q=bert&precision=fp32")
    search, folded = text.split('role="search"', 1)[1].split("<details", 1)
    assert 'name="q"' in search
    assert 'name="sort"' not in search
    assert folded.startswith(">")  # not open
    assert "Filter and sort (3 set)" in folded
    assert text.count('title="Remove this filter"') == 3
    assert text.count("Clear") == 1


def test_how_the_api_writes_an_order_is_not_on_the_page(alice_client):
    assert "in reverse" not in page(alice_client)


def test_a_cell_that_is_cut_has_its_whole_text_in_its_title(alice_client):
    store(device_name="A device with quite a long name", saving_per_year_usd=60.0, claimed_saving_per_year_usd=60.0)
    text = page(alice_client)
    assert 'title="A device with quite a long name"' in text
    assert 'title="$60.00"' in text


def test_the_actions_are_buttons_of_a_plain_form(alice_client):
    store()
    bar = page(alice_client).split('<form method="post" action="/runs/change/"', 1)[1].split("<table", 1)[0]
    buttons = re.findall(r'<button [^>]*name="action" value="(\w+)"', bar)
    assert buttons[0] == "tag"  # what Enter in its field presses
    assert buttons[1:] == ["compare", "cancel", "retry", "pin", "unpin", "delete", "tag", "untag"]


def test_the_runs_of_a_page_that_have_figures_are_compared_by_one_link(alice_client):
    runs = store(2) + store(kind="estimate", gpu="all") + store(state="failed") + store(kind="estimate", gpu="a10")
    address = re.search(r'href="/compare/\?ids=([\d,]+)"', page(alice_client))
    assert address is not None
    assert {int(number) for number in address[1].split(",")} == {runs[0].pk, runs[1].pk, runs[4].pk}


def test_who_only_reads_can_compare_and_nothing_else(client):
    client.force_login(make_user("reader", VIEWER))
    store()
    text = page(client)
    assert re.findall(r'name="action" value="(\w+)"', text) == ["compare"]


def test_a_list_of_several_pages_says_how_many_runs_it_has(alice_client):
    store(51)
    assert "51 runs" in words(page(alice_client))
    assert "51 runs" in words(page(alice_client, f"?after={Run.objects.order_by('-pk')[49].pk}"))


def test_the_links_to_further_pages_keep_filters_order_and_columns(alice_client):
    store(60)
    text = page(alice_client, "?model=bert-tiny&sort=created&columns=run,state")
    following = re.search(r'href="(\?[^"]*after=\d+)" rel="next"', text)
    assert following is not None
    address = following.group(1).replace("&amp;", "&")
    assert address.startswith("?model=bert-tiny&sort=created&columns=run,state&after=")
    assert len(numbers(page(alice_client, address))) == 10


def test_only_the_columns_that_are_asked_for_are_shown_in_their_order(alice_client):
    store()
    titles = re.findall(r'<th scope="col"[^>]*><a[^>]*>([^<]+)', page(alice_client, "?columns=run,optimizer,state"))
    assert [title.strip() for title in titles] == ["Run", "Optimizer", "State"]


def test_the_sorted_column_says_so_and_a_click_turns_it(alice_client):
    store(claimed_speedup=1.2)
    text = page(alice_client, "?sort=-largest")
    assert re.search(r'aria-sort="descending"><a href="\?sort=largest">Largest', text)
    assert 'href="?sort=-speedup"' in text


def test_a_line_tells_a_result_from_what_does_not_fit(alice_client):
    device = make_device()
    for result in (make_result(), make_result_that_does_not_fit()):
        run = make_claimed_run(device)
        services.run_finish(run_id=run.pk, token=run.token, result=result.to_dict())
    text = page(alice_client)
    assert "2.00x" in text
    assert "does not fit" in text


def test_a_line_shows_the_interval_of_a_speed_up_or_that_there_is_none(alice_client):
    store(speedup=1.39, speedup_low=1.36, speedup_high=1.42, claimed_speedup=1.39, is_speed_measurable=True)
    store(speedup=None, is_speed_measurable=False, largest_batch_size=8)
    store(speedup=None, is_speed_measurable=False, largest_batch_size=8, boundary_reason="time_budget")
    text = words(page(alice_client))
    assert "1.39x 1.36 to 1.42x" in text
    assert text.count("not known") == 1  # out of time, nothing was compared


def test_a_lower_bound_is_a_figure_of_the_list_and_sorts_like_one(alice_client):
    store(speedup=3.0, speedup_low=2.9, speedup_high=3.1, claimed_speedup=3.0, is_speed_measurable=True)
    bound = {"speedup_low": 2.05, "speedup_high": 3.81, "claimed_speedup": 2.05, "is_speed_measurable": False}
    store(**bound, saving_per_year_usd_low=61.239, claimed_saving_per_year_usd=61.239)
    store(speedup=1.5, speedup_low=1.4, speedup_high=1.6, claimed_speedup=1.5, is_speed_measurable=True)
    store(is_speed_measurable=False, largest_batch_size=8)
    text = words(page(alice_client, "?sort=-speedup"))
    assert "≥ 2x 2.0 to 3.9x" in text
    assert "≥ $61.23" in text
    places = [text.index(figure) for figure in ("3.00x", "≥ 2x", "1.50x", "not known")]
    assert places == sorted(places)


def test_a_size_that_is_kept_gains_nothing(alice_client):
    kept = {"recommended_batch_size": 16, "current_batch_size": 16}
    store(speedup=1.0, speedup_low=1.0, speedup_high=1.0, claimed_speedup=1.0, is_speed_measurable=True, **kept)
    assert "no gain" in words(page(alice_client))


def test_a_line_draws_memory_against_the_runs_own_limit(alice_client):
    store(memory_curve=[[1, GIB], [8, 2 * GIB]], limit_bytes=4 * GIB, recommended_memory_bytes=2 * GIB)
    text = page(alice_client)
    assert 'aria-label="1.0 GiB at batch 1, 2.0 GiB at 8"' in text
    assert "of 4 GiB" in text


def test_an_estimate_is_never_taken_for_a_measurement(alice_client):
    store(kind="estimate", estimated_largest_batch_size=777, estimated_safe_batch_size=666)
    text = page(alice_client)
    assert 'chip-estimate">estimate<' in text
    assert re.search(r'777<span class="settings">estimated', text)
    assert re.search(r'data-label="With margin"[^>]*><span title="Estimated, not measured">≈ </span>666<', text)
    assert '666<span class="settings">with margin<' in text
    assert 'data-label="Recommended"' not in text


def test_what_people_wrote_is_escaped(alice_client, root):
    run = store()[0]
    services.run_annotate(run_id=run.pk, by=root, name="<b>x", note="<script>", tags=[])
    text = page(alice_client, "?columns=run,note,name")
    assert "<script>alert" not in text
    assert "&lt;b&gt;x" in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize("query", ["", "?sort=-largest", "?q=nightly", "?tag=nightly&sort=user"])
def test_the_page_asks_the_database_as_often_for_50_runs_as_for_two(
    alice_client, root, query, django_assert_max_num_queries: Any
):
    made = store(2, name="nightly", largest_batch_size=3)
    services.runs_tag(run_ids=[run.pk for run in made], by=root, tag="nightly")
    # session, user, GPUs, devices, views, tags offered, live workers; rows, their second part, their tags; the tag
    # twice, its runs, or the words
    with django_assert_max_num_queries(15):
        page(alice_client, query)
    more = store(48, name="nightly", largest_batch_size=4)
    services.runs_tag(run_ids=[run.pk for run in more], by=root, tag="nightly")
    with django_assert_max_num_queries(15):
        page(alice_client, query)


@pytest.mark.parametrize("never", ['"result"', "analysis_measurement", 'COUNT(*) AS "__count" FROM "analysis_run"'])
def test_the_default_view_reads_no_result_no_probe_and_counts_nothing(
    alice_client, never, django_assert_max_num_queries
):
    store(3, result={"probes": []})
    with django_assert_max_num_queries(15) as asked:
        page(alice_client)
    assert not [query for query in asked.captured_queries if never in query["sql"]]


def change(client: Client, action: str, *runs: Run, **values: str) -> str:
    asked = {"action": action, "run": [run.pk for run in runs], "view": "sort=-largest", **values}
    response = client.post("/runs/change/", asked, follow=True)
    assert response.redirect_chain == [("/runs/?sort=-largest", 302)]
    return response.content.decode()


def test_ticked_runs_are_changed_and_the_answer_says_how_many(alice, alice_client, root):
    hers, others = store(2, requested_by=alice), store(requested_by=root)
    assert "2 deleted; 1 not: another person’s or deleted." in change(alice_client, "delete", *hers, *others)
    assert "1 tagged" in change(root_of(root), "tag", *others, tag="Paper")
    assert others[0].tags.get().name == "paper"


def root_of(root: Any) -> Client:
    client = Client()
    client.force_login(root)
    return client


def test_waiting_runs_are_cancelled_in_bulk(alice, alice_client):
    run = make_run(requested_by=alice)
    assert "1 cancelled." in change(alice_client, "cancel", run)
    assert Run.objects.get().state == "cancelled"


@pytest.mark.parametrize(("action", "tag"), [("", ""), ("explode", ""), ("tag", "no tag")])
def test_nothing_is_done_without_a_right_action(alice, alice_client, action, tag):
    run = store(requested_by=alice)[0]
    assert "Nothing was done" in change(alice_client, action, run, tag=tag)


def test_a_view_is_saved_shown_and_forgotten(alice, alice_client):
    alice_client.post("/runs/views/", {"view": "state=failed&after=9", "name": "Bad ones", "shared": "on"})
    view = SavedView.objects.get()
    assert (view.owner, view.query, view.is_shared) == (alice, "state=failed", True)
    assert 'href="/runs/?state=failed"' in page(alice_client)
    alice_client.post(f"/runs/views/{view.pk}/delete/")
    assert not SavedView.objects.exists()


def test_private_views_are_for_their_owner(alice_client, root):
    services.saved_view_set(owner=root, name="root's own", query="state=failed", is_shared=False)
    services.saved_view_set(owner=root, name="for all", query="state=running", is_shared=True)
    text = page(alice_client)
    assert "for all" in text
    assert "own" not in re.findall(r'class="chip[^>]*>([^<]*own)', text)


def test_a_run_is_annotated_from_its_page(alice, alice_client):
    run = store(requested_by=alice)[0]
    written = {"name": "n", "note": "why", "tags": "a, b"}
    answer = alice_client.post(f"/runs/{run.pk}/annotate/", written, follow=True)
    assert "Name, tags and note are saved." in words(answer.content.decode())
    run.refresh_from_db()
    assert (run.name, run.note, run.tags.count()) == ("n", "why", 2)


def heads(client: Client, query: str = "") -> list[str]:
    head = re.search(r"<thead>.*?</thead>", page(client, query), re.DOTALL)
    assert head is not None
    return re.findall(r'class="of-(\w+)', head[0])


def test_a_usual_column_that_no_run_fills_is_left_out_until_somebody_chooses_it(alice_client: Client) -> None:
    store(2, largest_batch_size=8)
    assert heads(alice_client) == ["run", "state", "gpu", "largest", "created"]
    assert "saving" in heads(alice_client, "?sort=-saving")
    assert heads(alice_client, "?columns=run,saving") == ["run", "saving"]
    assert heads(alice_client, "?group_by=model") == ["run", "state", "gpu", "largest", "created"]


def test_a_measured_run_says_whether_its_size_is_certified(alice_client: Client) -> None:
    store(2, largest_batch_size=8, certified=lambda place: place == 1)
    states = re.findall(r'<td class="of-state"[^>]*>.*?</span> ([a-z ]+)</span>', page(alice_client), re.DOTALL)
    assert states == ["certified", "not certified"]


def test_the_memory_that_today_leaves_unused_is_a_column_to_choose(alice_client: Client) -> None:
    store(1, current_waste_bytes=GIB // 2, limit_bytes=GIB)
    assert "512.0 MiB 50.0 %" in words(page(alice_client, "?columns=run,unused"))
