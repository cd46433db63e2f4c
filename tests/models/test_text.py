"""Text that could mislead is refused or marked; a command is a kind of run."""

import json
from dataclasses import replace

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import Client

from analysis.models import Run, SavedView, TrendAcknowledgement
from analysis.models.text import plain_line, plain_text, storable_json, storable_text
from analysis.runs import services
from engine.trainings.script.spec import TuneSpec
from tests.factories import FACTS, make_claimed_run, make_device, make_measured_run, make_result, make_run, make_spec

pytestmark = pytest.mark.django_db

HARMFUL = ["\x1b[31mred", "a\x00b", "\u202egnp.exe", "left\u2066right", "\x9bm", "\x08"]
HARMLESS = ["Ünïcödé", "日本語", "עברית", "👩‍🔬 run 7", "naïve – “quoted”"]


@pytest.mark.parametrize("text", HARMFUL)
def test_it_is_refused_from_people_with_its_number(text):
    for check in (plain_line, plain_text):
        with pytest.raises(ValidationError, match=r"U\+[0-9A-F]{4}"):
            check(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_every_script_and_emoji_is_taken(text):
    plain_line(text)
    assert storable_text(text, 100) == text


def test_a_note_has_lines_and_a_name_has_one():
    plain_text("one\ntwo\tthree\r\n")
    for ending in "\n\r\t\u2028":
        with pytest.raises(ValidationError, match="single line"):
            plain_line(f"one{ending}two")


def test_what_the_engine_says_is_kept_with_a_mark():
    assert storable_text("\x1b[31mno\u202e\ud800", 100) == "\ufffd[31mno\ufffd\ufffd"
    assert storable_json({"a\x00": ["\x1b", 1, None, {"b": True}]}) == {"a\ufffd": ["\ufffd", 1, None, {"b": True}]}


@pytest.mark.parametrize("text", ["\x1b", "a\u202eb"])
def test_no_page_and_no_body_stores_it(alice, alice_client, root_client, text):
    run = make_run(requested_by=alice)
    body = {"name": text}
    for field in ("name", "note"):
        answer = alice_client.patch(f"/api/v1/runs/{run.pk}/", {field: text}, "application/json")
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, f"/{field}")
        alice_client.post(f"/runs/{run.pk}/annotate/", {"name": "", "note": "", **{field: text}})
    assert alice_client.post("/api/v1/saved-views/", body, "application/json").status_code == 400
    alice_client.post("/runs/views/", {**body, "query": ""})
    answer = root_client.post(
        f"/admin/analysis/host/{run.requested_device.host_id}/change/", {"maintenance_note": text}
    )
    assert "characters that turn the direction" in answer.content.decode()
    run.refresh_from_db()
    run.requested_device.host.refresh_from_db()
    assert (run.name, run.note, run.requested_device.host.maintenance_note) == ("", "", "")
    assert not SavedView.objects.exists()


def test_a_note_on_a_step_is_no_exception(alice_client):
    run = make_measured_run()
    answer = alice_client.post(f"/trend/acknowledge/{run.pk}/", {"metric": "peak", "note": "a\x1bb"}, follow=True)
    assert "The note was not saved: a note must not hold control characters" in answer.content.decode()
    assert not TrendAcknowledgement.objects.exists()


def test_the_name_that_a_driver_gives_breaks_no_picture(alice_client):
    run = make_claimed_run(make_device())
    result = make_result(device=replace(FACTS, name="Card\x1b\u202e"))
    services.run_finish(run_id=run.pk, token=run.token, result=result.to_dict())
    stored = Run.objects.get()
    assert (stored.device_name, stored.result["device"]["name"]) == ("Card\ufffd\ufffd", "Card\ufffd\ufffd")


COMMAND = TuneSpec(("train", "--batch={batch_size}")).to_dict()


@pytest.fixture
def kinds() -> dict[str, int]:
    command = Run.objects.create(kind="command", model="train", spec=COMMAND, state="failed")
    validation = Run.objects.create(kind="validation", model="bert-tiny", spec={}, state="failed")
    estimate = Run.objects.create(kind="estimate", model="bert-tiny", spec={}, state="failed")
    measurement = Run.objects.create(model="bert-tiny", spec=make_spec().to_dict(), state="failed")
    runs = (command, validation, estimate, measurement)
    return {str(run.kind): run.pk for run in runs}


def test_lists_name_a_command_a_measurement(kinds, alice_client: Client) -> None:
    measured = {kinds["command"], kinds["measurement"]}
    rows = alice_client.get("/api/v1/runs/?kind=measurement").json()["results"]
    assert {row["id"]: row["kind"] for row in rows} == dict.fromkeys(measured, "measurement")
    assert alice_client.get(f"/api/v1/runs/{kinds['command']}/").json()["kind"] == "measurement"
    assert alice_client.get("/api/v1/runs/?kind=command").status_code == 400
    exported = json.loads(alice_client.get("/runs/export.json?kind=measurement").getvalue())
    assert {row["id"]: row["kind"] for row in exported} == dict.fromkeys(measured, "measurement")


def test_runs_sorted_by_kind_have_commands_among_the_measurements(kinds, alice_client: Client) -> None:
    first = alice_client.get("/api/v1/runs/?sort=kind&limit=3").json()
    rows = [*first["results"], *alice_client.get(first["next"]).json()["results"]]
    assert [row["id"] for row in rows] == [kinds[kind] for kind in ("estimate", "measurement", "command", "validation")]


def test_the_kind_that_lists_name_has_an_index() -> None:
    if connection.vendor == "postgresql":  # which chooses by what it knows of the rows, and reads a few without any
        Run.objects.bulk_create(Run(model="bert-tiny", spec={}) for _ in range(500))
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE analysis_run")
            cursor.execute("SET LOCAL enable_seqscan = off")
    plan = Run.objects.estimating().order_by("-created_at").explain()
    assert "run_by_kind" in plan
    assert "TEMP B-TREE" not in plan
