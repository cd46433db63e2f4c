"""Exports: exactly the runs of the view, in its order, in plain units."""

import csv
import io
import json

import pytest
from django.test import Client

from analysis.lists.runs.export import FIELDS
from analysis.runs import services
from tests.factories.history import store

pytestmark = pytest.mark.django_db


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
