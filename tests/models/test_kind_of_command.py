"""A command is a kind of run: lists name it a measurement."""

import json

import pytest
from django.db import connection
from django.test import Client

from analysis.models import Run
from engine.tune.spec import TuneSpec
from tests.factories import make_spec

pytestmark = pytest.mark.django_db

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
