"""Each filter finds what it should and nothing else; what is not understood finds nothing and says so."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.http import QueryDict

from analysis.pages.history.query import parse_query
from analysis.runs import services
from analysis.runs.search_terms import search_terms
from tests.factories import make_card
from tests.factories.history import store

pytestmark = pytest.mark.django_db


def found(query: str) -> set[int]:
    view = parse_query(QueryDict(query))
    assert not view.problems, view.problems
    return {pk for part in view.parts for pk in part.runs.values_list("pk", flat=True)}


def problem(query: str) -> str:
    return " ".join(parse_query(QueryDict(query)).problems)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("model=gpt2", {"model": "gpt2"}),
        ("gpu=NVIDIA%20L4", {"device_name": "NVIDIA L4"}),
        ("state=failed", {"state": "failed"}),
        ("state=failed&state=cancelled", {"state": "cancelled"}),
        ("kind=estimate", {"kind": "estimate"}),
        ("precision=bf16", {"precision": "bf16"}),
        ("optimizer=sgd", {"optimizer": "sgd"}),
        ("largest_min=10&largest_max=20", {"largest_batch_size": 20}),
        ("baseline=true", {"is_baseline": True}),
        ("shared=true", {"is_shared": True}),
        ("model=bert-tiny&precision=tf32", {"precision": "tf32"}),
    ],
)
def test_a_filter_finds_its_runs_alone(query, columns):
    store(2, largest_batch_size=30, is_shared=False)
    wanted = store(**columns)[0]
    assert found(query) == {wanted.pk}


def test_a_user_is_found_by_name(alice, root):
    hers, _ = store(requested_by=alice)[0], store(requested_by=root)
    assert found("user=alice") == {hers.pk}


def test_days_are_utc_and_the_last_is_left_out():
    early = store(created_at=datetime(2026, 11, 9, 23, 59, tzinfo=UTC))[0]
    late = store(created_at=datetime(2026, 11, 10, tzinfo=UTC))[0]
    assert found("created_after=2026-11-10") == {late.pk}
    assert found("created_before=2026-11-10") == {early.pk}


def test_deleted_runs_are_found_only_when_they_are_asked_for(root):
    kept, gone = store(2)
    services.runs_delete(run_ids=[gone.pk], by=root)
    assert found("") == {kept.pk}
    assert found("deleted=true") == {gone.pk}


def test_a_tag_finds_the_runs_that_have_it(root):
    tagged, _ = store(2)
    services.runs_tag(run_ids=[tagged.pk], by=root, tag="paper")
    assert found("tag=paper") == {tagged.pk}


@pytest.mark.parametrize("few", [0, 5_000])
@pytest.mark.parametrize("text", ["sweep", "SWE", "café", "quiet 7"])
def test_text_finds_the_beginnings_of_words_rare_or_frequent(root, monkeypatch, text, few):
    monkeypatch.setattr("analysis.pages.history.filters.FEW", few)
    run, _ = store(2)
    services.run_annotate(run_id=run.pk, by=root, name="Sweep_7 café", note="a quiet card", tags=[])
    assert found(f"q={text}") == {run.pk}


def test_text_finds_a_gpu_by_a_part_of_its_name():
    make_card(name="NVIDIA H100 80GB HBM3")
    run = store(device_name="NVIDIA H100 80GB HBM3")[0]
    store(device_name="NVIDIA L4")
    assert found("q=h100") == {run.pk}


def test_the_words_of_a_text_are_small_and_plain():
    assert search_terms("Café run_7, CAFÉ!") == ["cafe", "run", "7"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("modell=bert", "modell: there is no such parameter"),
        ("state=lost", "state: Select a valid choice"),
        ("user=nobody", "user: there is no user of this name"),
        ("tag=nothing", "tag: there is no such tag"),
        ("largest_min=many", "largest_min: Enter a number"),
        ("created_after=yesterday", "created_after: Enter a valid date"),
        ("model=bert&model=gpt2", "model: given 2 times"),
        ("sort=colour", "Runs are not sorted by"),
        ("columns=colour", "There is no column"),
        ("after=x", "after: must be the number of a run"),
        ("before=99999999999999999999", "before: must be the number of a run"),
    ],
)
def test_what_is_not_understood_is_said(query, said):
    assert said in problem(query)


def test_a_view_is_told_in_words():
    words = [chosen.label for chosen in parse_query(QueryDict("state=failed&state=cancelled&model=bert")).chosen]
    assert words == ["Model: BERT base", "State: Failed or Cancelled"]


def test_dropping_one_filter_keeps_the_others_and_the_order():
    view = parse_query(QueryDict("state=failed&model=bert&sort=-largest&after=7"))
    assert view.chosen[0].without == "state=failed&sort=-largest"
