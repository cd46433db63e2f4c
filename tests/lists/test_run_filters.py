"""Each filter finds what it should and nothing else, or says so; exports are exactly the runs of the view."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict
from django.test import Client

from analysis.lists.runs.export import FIELDS
from analysis.lists.runs.query import parse_query
from analysis.models import Run
from analysis.runs import services
from analysis.runs.columns.search_terms import search_terms
from tests.factories import make_card, make_device, make_measured_run, make_run, make_spec
from tests.factories.history import store

pytestmark = pytest.mark.django_db


def found(query: str) -> set[int]:
    view = parse_query(QueryDict(query))
    assert not view.problems, view.problems
    return {pk for part in view.parts for pk in part.rows.values_list("pk", flat=True)}


def problem(query: str) -> str:
    return " ".join(map(str, parse_query(QueryDict(query)).problems))


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


@pytest.mark.parametrize(
    ("query", "given"),
    [
        ("sequence_length=64", {"sequence_length": 64}),
        ("gradient_checkpointing=true", {"gradient_checkpointing": True}),
        ("mode=eval", {"mode": "eval"}),
        ("pretrained=true", {"pretrained": True}),
        ("image_size=96", {"model": "resnet18", "image_size": 96}),
        ("memory_limit_bytes=1073741824", {"memory_limit_bytes": 2**30}),
        ("current_batch_size=4", {"current_batch_size": 4}),
    ],
)
def test_a_setting_that_stands_in_the_spec_alone_finds_its_runs(query, given):
    store(2)
    wanted = store(spec=make_spec(**given).to_dict(), model=given.get("model", "bert-tiny"))[0]
    assert found(query) == {wanted.pk}


def test_an_input_size_finds_runs_that_left_it_to_the_model():
    run, other = store(model="bert")[0], store(model="resnet18", spec=make_spec(model="resnet18").to_dict())[0]
    assert found("sequence_length=128") == {run.pk}
    assert found("image_size=224") == {other.pk}


@pytest.mark.parametrize("query", ["certified=true", "host=lab-2"])
def test_a_certificate_and_a_host_find_their_runs(query):
    wanted, _ = store(certified=True, device=make_card(host="lab-2"))[0], store(certified=False)
    assert found(query) == {wanted.pk}


@pytest.mark.parametrize("few", [0, 5_000])
def test_a_run_that_is_asked_for_is_found_by_its_settings(monkeypatch, few):
    monkeypatch.setattr("analysis.lists.runs.filters.FEW", few)
    device = make_device()
    wanted, _ = make_run(device, gradient_checkpointing=True), make_run(device)
    assert found("gradient_checkpointing=true&sequence_length=128&mode=train") == {wanted.pk}


@pytest.mark.parametrize("name", ["finished", "updated"])
def test_what_ended_or_changed_since_a_moment_is_found_to_the_second(name):
    moment = datetime(2026, 11, 10, 12, 30, 5, tzinfo=UTC)
    early, late = store(2)
    Run.objects.filter(pk=early.pk).update(**{f"{name}_at": moment - timedelta(seconds=1)})
    Run.objects.filter(pk=late.pk).update(**{f"{name}_at": moment})
    assert found(f"{name}_after=2026-11-10T12:30:05Z") == {late.pk}
    assert found(f"{name}_after=2026-11-10T13:30:05%2B01:00") == {late.pk}
    assert found(f"{name}_after=2026-11-10") == {early.pk, late.pk}


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
    monkeypatch.setattr("analysis.lists.runs.filters.FEW", few)
    run, _ = store(2)
    services.run_annotate(run_id=run.pk, by=root, name="Sweep_7 café", note="a quiet card", tags=[])
    assert found(f"q={text}") == {run.pk}


def test_text_finds_a_model_and_a_gpu_by_a_part_of_its_name():
    model = store(model="vit_b_16")[0]
    assert found("q=vit") == {model.pk}
    run = store(device_name="NVIDIA H100 80GB HBM3")[0]
    store(device_name="NVIDIA L4")
    assert found("q=h100") == found("q=nvidia 80gb hbm3") == {run.pk}


def test_a_run_is_found_by_its_card_once_it_has_run_there():
    run = make_measured_run(make_card(name="NVIDIA H100 80GB HBM3"))
    assert found("q=bert h100") == {run.pk}
    assert found("q=bert h200") == set()


def test_the_beginning_of_another_term_changes_nothing():
    run, _ = store(1, name="nightly")[0], store(1, name="night")
    assert found("q=n nightl nig nightly") == {run.pk}


def test_a_purged_run_leaves_no_word_behind(root):
    run, other = store(2, name="nightly")
    Run.all_runs.filter(pk=run.pk).delete()
    assert found("q=nightly") == {other.pk}


def test_rare_filters_together_are_one_list_in_the_statement():
    runs = store(30, name="nightly", precision="bf16", optimizer="sgd")
    view = parse_query(QueryDict("q=nightly&precision=bf16&optimizer=sgd&model=bert-tiny"))
    statement, parameters = view.parts[0].rows.query.sql_with_params()
    assert statement.count(" IN (") == 1
    assert len([number for number in parameters if number in {run.pk for run in runs}]) == 30


def test_the_words_of_a_text_are_small_and_plain():
    assert search_terms("Café run_7, CAFÉ!") == ["cafe", "run", "7"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("modell=bert", "modell: there is no such parameter"),
        ("state=lost", "state: must be one of queued, running"),
        ("user=nobody", "user: there is no user of this name"),
        ("tag=nothing", "tag: there is no such tag"),
        ("largest_min=many", "largest_min: must be a whole number from 0"),
        ("created_after=yesterday", "created_after: must be a day such as"),
        ("finished_after=yesterday", "finished_after: must be a moment or a day such as 2026-11-21T08:30:00Z"),
        ("updated_after=0001-01-01T00:00:00%2B14:00", "updated_after: must be a moment"),
        ("q=" + "+".join("abcdef"), "q: Must be at most 5 words and 200 characters"),
        (f"q={'a' * 201}", "q: Must be at most 5 words"),
        ("q=!!!", "q: Must hold a letter or a digit"),
        ("mode=fast", "mode: must be one of train, eval"),
        ("sequence_length=1.5", "sequence_length: must be a whole number from 1 to 1,000,000"),
        ("certified=perhaps", "certified: must be true or false"),
        ("model=bert&model=gpt2", "model: given 2 times"),
        ("sort=colour", "sort: must be one of -run, run, -state, state"),
        ("columns=colour", "columns: There is no column"),
        ("after=x", "after: must be a whole number from 1"),
        ("before=99999999999999999999", "before: must be a whole number from 1"),
    ],
)
def test_what_is_not_understood_is_said(query, said):
    assert said in problem(query)


def test_a_view_is_told_in_words():
    words = [chosen["label"] for chosen in parse_query(QueryDict("state=failed&state=cancelled&model=bert")).chosen]
    assert words == ["Model: BERT base", "State: Failed or Cancelled"]


def test_dropping_one_filter_keeps_the_others_and_the_order():
    view = parse_query(QueryDict("state=failed&model=bert&sort=-largest&after=7"))
    assert view.chosen[0]["without"] == "state=failed&sort=-largest"


def exported(client: Client, form: str, query: str = "") -> str:
    response = client.get(f"/runs/export.{form}?{query}")
    assert response.status_code == 200
    return b"".join(response.streaming_content).decode()


def rows(client: Client, query: str = "") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(exported(client, "csv", query))))


def test_the_files_hold_the_runs_of_the_view_in_its_order(alice_client):
    runs = store(4, largest_batch_size=lambda n: (5, None, 9, 7)[n])
    store(model="gpt2")
    expected = [runs[place].pk for place in (2, 3, 0, 1)]
    query = "model=bert-tiny&sort=-largest"
    assert [int(row["id"]) for row in rows(alice_client, query)] == expected
    assert [run["id"] for run in json.loads(exported(alice_client, "json", query))] == expected


def test_figures_leave_in_bytes_and_what_is_unknown_leaves_empty(alice_client):
    store(recommended_memory_bytes=1_610_612_736, speedup=None)
    row = rows(alice_client)[0]
    assert (row["recommended_memory_bytes"], row["speedup"]) == ("1610612736", "")
    assert json.loads(exported(alice_client, "json"))[0]["speedup"] is None


def test_the_interval_of_a_speed_up_leaves_with_it(alice_client):
    store(speedup=1.39, speedup_low=1.36, speedup_high=1.42, is_speed_measurable=True, saving_per_year_usd_low=31.5)
    row = rows(alice_client)[0]
    assert (row["speedup_low"], row["speedup_high"], row["is_speed_measurable"]) == ("1.36", "1.42", "True")
    assert json.loads(exported(alice_client, "json"))[0]["saving_per_year_usd_low"] == 31.5


def test_an_export_of_nothing_is_a_file_of_nothing(alice_client):
    assert exported(alice_client, "csv").split() == [",".join(FIELDS)]
    assert json.loads(exported(alice_client, "json")) == []


def test_tags_and_note_come_along(alice_client, root):
    run = store()[0]
    services.run_annotate(run_id=run.pk, by=root, name="a", note="b, c", tags=["x", "y"])
    row = rows(alice_client)[0]
    assert (row["tags"], row["note"]) == ("x y", "b, c")


def test_what_a_spreadsheet_would_compute_is_marked_in_csv_alone(alice_client):
    store(name="=1+1")
    assert rows(alice_client)[0]["name"] == "'=1+1"
    assert json.loads(exported(alice_client, "json"))[0]["name"] == "=1+1"


def test_a_mistyped_filter_exports_nothing(alice_client):
    store()
    response = alice_client.get("/runs/export.csv?modell=bert")
    assert response.status_code == 400
    assert "there is no such parameter" in response.content.decode()


def test_an_export_reads_in_chunks_with_a_query_for_each_and_one_for_its_tags(
    alice_client, monkeypatch, django_assert_num_queries
):
    monkeypatch.setattr("analysis.lists.runs.export.ROWS_AT_ONCE", 4)
    exported(alice_client, "csv")  # the first one makes the row that counts them
    store(10)
    # session, user, her rights (2); allowance, the audit log's entry, rows, tags of 3 chunks
    with django_assert_num_queries(4 + 1 + 1 + 1 + 3):
        assert len(rows(alice_client)) == 10
