"""A function that a program tuned, as one of a notebook, is reported as a command is: recomputed, shown, never run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.accounts.tokens import token_create
from analysis.models import Measurement, Run
from analysis.runs import services
from analysis.runs.marks.share_links import share_link_create
from engine.cli.main import main
from engine.questions.answers import FIRST_VERSION
from tests.factories import make_user
from tests.factories.pages import words
from tests.factories.reports import SendingClient, make_function_document, make_run_key

pytestmark = pytest.mark.django_db


def stored(sender: SendingClient, **spec: Any) -> Run:
    answer = sender.send_result(make_function_document(**spec))
    assert answer.status_code == 201, answer.content
    return Run.objects.with_places().get(pk=answer.json()["id"])


def test_its_document_becomes_a_finished_run_of_the_function(sender):
    run = stored(sender)
    assert (run.state, run.kind, run.model) == ("finished", "command", "make_step")
    assert (run.largest_batch_size, run.recommended_batch_size, run.certified) == (1_845, 1_742, True)
    assert (run.spec["function"], run.spec["starting"], run.precision) == ("make_step", "fork", "")


def test_every_page_that_shows_a_run_shows_it(sender, alice_client: Client, root_client: Client, root: User):
    run, other = stored(sender), stored(sender)
    services.trust_give(by=root, host=run.reported_from)
    both = f"ids={run.pk},{other.pk}"
    lists = ("/", "/runs/", "/trend/", "/matrix/", "/runs/export.csv", "/runs/export.json", f"/compare/?{both}")
    parts = ("", "advice/", "export.json", "export.csv")
    programs = ("", "result/", "measurements/", "points/", "certificate/", "attempts/", "events/")
    for address in (
        *lists,
        *(f"/runs/{run.pk}/{part}" for part in parts),
        "/api/v1/runs/",
        *(f"/api/v1/runs/{run.pk}/{part}" for part in programs),
    ):
        assert alice_client.get(address).status_code == 200, address
    body = {"ids": [run.pk, other.pk]}
    assert alice_client.post("/api/v1/compare/", body, "application/json").status_code == 200
    assert root_client.get(f"/admin/analysis/run/{run.pk}/change/").status_code == 200
    text = words(alice_client.get(f"/runs/{run.pk}/").content.decode())
    assert "make_step trains with up to 1,845 samples" in text
    assert "step = make_step(1742)" in text
    assert "function make_step" in text


def test_it_is_live_from_its_announcement_on(sender, alice_client: Client):
    spec = json.loads(make_function_document())["result"]["spec"]
    answer = sender.begin(key := make_run_key(), kind="command", spec=spec)
    assert answer.status_code == 201, answer.content
    run = Run.objects.get()
    sender.send_events(key, 0, {"event": "started", "spec": spec}, {"event": "phase", "phase": "searching"})
    assert "make_step" in alice_client.get(f"/runs/{run.pk}/").content.decode()
    assert sender.send_result(make_function_document(key)).json()["id"] == run.pk
    run.refresh_from_db()
    assert (run.state, run.reported_from) == ("finished", "workstation")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"batch": "function"}, "command"),
        ({"function": 5}, "function"),
        ({"function": ""}, "function"),
        ({"function": "make_step", "starting": "shell"}, "starting"),
        ({"function": "make_step", "script": {}}, "script"),
        ({"function": "make_step", "whole_run": True}, "whole_run"),
        ({"command": ["train", "{batch_size}"], "name": 5}, "name"),
        ({"command": ["train", "{batch_size}"], "batch": 5}, "batch"),
    ],
)
def test_a_spec_that_is_none_is_refused_by_its_field(sender, spec, field):
    answer = sender.begin(make_run_key(), kind="command", spec=spec)
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{field}"]


def test_a_function_that_is_called_as_a_model_is_never_taken_for_it(sender, alice_client: Client, root: User):
    run = stored(sender, function="bert", model="bert (own)")
    services.trust_give(by=root, host=run.reported_from)
    assert run.model == "bert (own)"
    page = words(alice_client.get(f"/runs/{run.pk}/").content.decode())
    assert "bert (own) trains with up to 1,845" in page
    assert "BERT base" not in page
    refused = sender.send_result(make_function_document(function="bert", model="bert"))
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/spec.model")


def test_a_link_that_shares_it_shows_neither_its_name_nor_its_file(sender, alice: User):
    run = stored(sender, function="secret_step", model="secret_step", script="/home/alice/secret.py")
    _, secret = share_link_create(run_id=run.pk, by=alice, days=7)
    page = Client().get(f"/share/{secret}/", headers={"accept": "text/html"})
    assert page.status_code == 200
    assert "secret_step" not in page.content.decode()
    assert "secret.py" not in page.content.decode()
    assert "1,845" in page.content.decode()


def test_a_name_that_no_database_stores_is_marked(sender):
    assert stored(sender, function="make\x00step", model="make\x00step").model == "make\N{REPLACEMENT CHARACTER}step"


def token_of(name: str) -> str:
    _, secret = token_create(owner=make_user(name), name="notebook", may_write=True, expires_at=None)
    return secret


@pytest.mark.django_db(transaction=True)
def test_sync_brings_it_once_and_says_what_is_too_old(live_server: Any, tmp_path: Path, monkeypatch, capsys):
    new, old = tmp_path / "new.json", tmp_path / "old.json"
    new.write_bytes(make_function_document())
    content = json.loads(make_function_document())
    del content["result"]["environment"]["run_key"]
    old.write_text(json.dumps(content))
    secret = token_of("carol")
    for state in ("sent", "known"):
        monkeypatch.setenv("MEMORYMARK_TOKEN", secret)
        assert main(["sync", str(new), str(old), "--report-to", live_server.url]) == 8
        first, second = capsys.readouterr().out.splitlines()
        assert first == f"{state}: {new} ({live_server.url}/runs/{Run.objects.get().pk}/)"
        assert second.startswith(f"refused: {old} (refused with 400: environment.run_key: is missing: the engine")
        assert second.endswith(f"measure again with MemoryMark {FIRST_VERSION} or later)")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_program_that_tunes_its_own_function_reports_it_from_beginning_to_end(live_server: Any, tmp_path: Path):
    scripts, root = Path(__file__).parents[1] / "engine" / "trainings" / "script" / "scripts", Path(__file__).parents[2]
    portal = {"MEMORYMARK_REPORT_TO": live_server.url, "MEMORYMARK_TOKEN": token_of("carol")}
    paths = {"PYTHONPATH": f"{root}{os.pathsep}{scripts}", "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, str(scripts / "program.py"), "make_step", "8MiB"],
        cwd=tmp_path,
        env=os.environ | paths | portal,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    result = json.loads(done.stdout)
    run = Run.objects.with_places().get()
    assert done.stderr.endswith(f"reported: {live_server.url}/runs/{run.pk}/\n")
    assert (run.state, run.result["boundary"], run.result["spec"]["starting"]) == (
        "finished",
        result["boundary"],
        "fork",
    )
    assert result["training"]["changed_files"] == []
    assert Measurement.objects.of(run).count() == len(result["probes"])
    assert run.report.events_received > len(result["probes"])
    assert [path.name for path in (tmp_path / "memorymark-runs").glob("*.json")] == [f"{run.report.run_key}.json"]
