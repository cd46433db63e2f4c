"""A race of a script is reported, stored as a kind of its own, and shown on the page of races with its command."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from analysis.models import Run, RunLog
from engine.kinds import RunKind
from engine.tune.spec import TuneSpec
from tests.engine.recompute.own_race_documents import document_of
from tests.factories import make_user
from tests.factories.reports import HOST, STARTED_AT, SendingClient, make_run_key
from tests.factories.speeds import make_timed_result
from tests.factories.tuned import COMMAND, tuned

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return make_user("ann")


def body_of(document: dict[str, Any]) -> bytes:
    origin = {"run_key": make_run_key(), "host": HOST, "started_at": STARTED_AT}
    environment = {**document["environment"], **origin}
    return json.dumps({"exit_status": 0, "result": {**document, "environment": environment}}).encode()


def reported(ann: User, name: str) -> Run:
    answer = SendingClient(ann).send_result(body_of(document_of(name)))
    assert answer.status_code == 201, answer.content
    return Run.objects.get(pk=answer.json()["id"])


def page_of(client: Client, run: Run) -> str:
    return html.unescape(client.get(run.get_absolute_url(), headers={"accept": "text/html"}).content.decode())


def test_a_reported_race_of_a_script_has_a_page_with_its_command_and_lines(client: Client, ann: User) -> None:
    run = reported(ann, "workers first")
    assert (run.kind, run.model, run.largest_batch_size, run.state) == (RunKind.OWN_RACE, "train.py", None, "finished")
    client.force_login(ann)
    page = page_of(client, run)
    assert document_of("workers first")["headline"] in page
    assert "python train.py" in page
    assert "limited to" not in page
    assert "Largest batch" not in page
    assert "persistent_workers=True)" in page
    assert "torch.optim.Adam(..., fused=True)" in page
    assert "is the limit: " in page
    assert "with Loader workers in both" in page
    assert "Race again" not in page


def test_the_lines_on_the_page_are_written_from_the_facts_and_not_taken_from_the_document(
    client: Client, ann: User
) -> None:
    run = reported(ann, "one that gains")
    result = run.result or {}
    result["lines"] = result["rows"][0]["lines"] = ["os.system('echo owned')"]
    result["rows"][0]["lines"] = "os.system('echo owned')"
    Run.objects.filter(pk=run.pk).update(result=result)
    client.force_login(ann)
    page = page_of(client, run)
    assert "torch.optim.Adam(..., fused=True)" in page
    assert "echo owned" not in page


def test_its_events_are_followed_while_it_runs(client: Client, ann: User) -> None:
    sender, run_key, spec = SendingClient(ann), make_run_key(), document_of("one that gains")["spec"]
    assert sender.begin(run_key, kind="own_race", spec=spec).status_code in (200, 201)
    timing = {"event": "timing", "seconds": 1.0, "stage": "selection", "round": 1, "batch_sizes": []}
    log = {"event": "log", "seconds": 2.0, "level": "info", "message": "round 1: today 387.1 samples/s"}
    assert sender.send_events(run_key, 0, timing, log).status_code == 200
    run = Run.objects.get()
    assert [line.message for line in RunLog.objects.of(run)] == [log["message"]]
    client.force_login(ann)
    page = page_of(client, run)
    assert "Racing what makes train.py faster" in page
    assert "limited to" not in page


def test_a_forged_race_of_a_script_and_one_of_an_older_form_are_refused(ann: User) -> None:
    forged = document_of("one that gains")
    forged["headline"] = "9x as fast."
    answer = SendingClient(ann).send_result(body_of(forged))
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/headline")
    older = document_of("one that gains")
    del older["facts"]
    answer = SendingClient(ann).send_result(body_of(older))
    assert answer.status_code == 400
    assert "race it again" in answer.content.decode()
    assert not Run.all_runs.exists()


def test_the_page_of_a_script_names_its_newest_race_but_none_of_a_stranger(client: Client, ann: User) -> None:
    run = tuned(make_timed_result(), TuneSpec(COMMAND, current_batch_size=4))
    race = reported(ann, "one that gains")
    spec = {**race.spec, **{name: run.spec[name] for name in ("command", "directory", "current_batch_size")}}
    Run.objects.filter(pk=race.pk).update(device=run.device, spec=spec)
    client.force_login(ann)
    link = f'<a href="{race.get_absolute_url()}">Run {race.pk}</a>'
    assert link not in page_of(client, run)
    Run.objects.filter(pk=race.pk).update(is_trusted=True)
    assert f"{document_of('one that gains')['headline']} {link}" in page_of(client, run)


def test_a_secret_of_its_command_is_hidden(ann: User) -> None:
    document = document_of("one that gains")
    document["spec"]["command"] = ["python", "train.py", "--token", "hf_abcdefghijklmnopqrstuvwxyz012345"]
    answer = SendingClient(ann).send_result(body_of(document))
    assert answer.status_code == 201, answer.content
    run = Run.objects.get(pk=answer.json()["id"])
    assert "hf_abcdefgh" not in json.dumps([run.result, run.spec])


def test_a_portal_starts_no_race_of_a_script(client: Client, ann: User) -> None:
    api = APIClient()
    api.force_authenticate(ann)
    answer = api.post("/api/v1/runs/", {"kind": "own_race", "model": "bert-tiny"}, format="json")
    assert answer.status_code == 400
    assert "where it is" in answer.content.decode()
    run = reported(ann, "one that gains")
    assert api.post(f"/api/v1/runs/{run.pk}/clone/", {}, format="json").status_code == 409
    client.force_login(ann)
    client.post(f"{run.get_absolute_url()}repeat/")
    assert Run.objects.count() == 1


def test_lists_name_what_it_found_and_compare_says_why_it_is_left_out(client: Client, ann: User) -> None:
    run = reported(ann, "one that gains")
    client.force_login(ann)
    listed = html.unescape(client.get("/runs/?kind=own_race", headers={"accept": "text/html"}).content.decode())
    assert "train.py" in listed
    exported = b"".join(client.get("/runs/export.csv?kind=own_race"))
    assert b"own_race" in exported
    compared = client.get(f"/compare/?ids={run.pk}").content.decode()
    assert "a race of settings, which has no batch size to compare" in compared
