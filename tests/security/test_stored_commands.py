"""No secret of a command line is stored or shown, and what was reported is never repeated as a registered command."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import Client

from analysis.models import Run
from analysis.runs import services
from engine.text.masking import NAMES_VARIABLE
from tests.factories import make_device
from tests.factories.reports import HOST, SendingClient, make_function_document, make_run_key

pytestmark = pytest.mark.django_db

SECRET = "WANDBSECRET123"
COMMAND = ["python", "train.py", "--wandb-key", SECRET, f"--db=postgres://u:{SECRET}@h/d", "{batch_size}"]
SHOWN = ["python", "train.py", "--wandb-key", "***", "--db=postgres://u:***@h/d", "{batch_size}"]


@pytest.fixture
def run(alice) -> Run:
    """A run whose sender hid nothing, as an engine of another version might."""
    document = json.loads(make_function_document())
    spec: dict[str, Any] = document["result"]["spec"]
    for name in ("starting", "script"):
        del spec[name]
    own = {"command": COMMAND, "batch": "template", "model": "train.py", "function": None}
    document["result"]["spec"] = {**spec, **own}
    sender, key = SendingClient(alice), make_run_key()
    document["result"]["environment"]["run_key"] = key
    assert sender.begin(key, kind="command", spec=document["result"]["spec"]).status_code == 201
    assert SECRET not in json.dumps(Run.objects.get().spec)
    answer = sender.send_result(json.dumps(document).encode())
    assert answer.status_code == 201, answer.content
    return Run.objects.get()


def test_a_sender_that_hides_nothing_has_it_hidden(run: Run, alice_client, root_client) -> None:
    assert run.spec["command"] == run.result["spec"]["command"] == SHOWN
    pages = (f"/runs/{run.pk}/", f"/runs/{run.pk}/export.json", f"/api/v1/runs/{run.pk}/", "/api/v1/runs/", "/runs/")
    for address in (*pages, f"/api/v1/runs/{run.pk}/result/", f"/runs/{run.pk}/export.csv", "/runs/export.json"):
        answer = alice_client.get(address)
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        assert (answer.status_code, SECRET in content.decode()) == (200, False), address
    assert SECRET not in root_client.get(f"/admin/analysis/run/{run.pk}/change/").content.decode()


def test_a_wrong_name_of_a_secret_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAMES_VARIABLE, "vault, --pin")
    with pytest.raises(SystemCheckError, match=r"analysis.E013.*MEMORYMARK_SECRET_NAMES: '--pin' must be"):
        call_command("check")
    monkeypatch.setenv(NAMES_VARIABLE, "vault")
    call_command("check")


NOT_OFFERED = {
    **{"time_budget_seconds": 21_000.0, "compare_speed": True, "whole_run": True},
    **{"soak_steps": 9_999, "max_batch_size": 1_048_576},
}


@pytest.fixture
def forged(settings, tmp_path: Path, alice) -> Run:
    """A failed run that claims to be of the registered command, as the API shows it, with settings of its own."""
    settings.COMMANDS_FILE = tmp_path / "commands.toml"
    command = '[[command]]\nname = "tagger"\ncommand = ["python", "train.py", "{batch_size}"]\n'
    settings.COMMANDS_FILE.write_text(command + 'settings = ["current_batch_size"]\n')
    make_device()
    sender, key = SendingClient(alice), make_run_key()
    spec = {"command": ["python", "train.py", "{batch_size}"], "name": "tagger", "device": "cpu", **NOT_OFFERED}
    assert sender.begin(key, kind="command", spec=spec).status_code == 201
    error = {"event": "error", "seconds": 1.0, "error": {"code": "workload_failed", "message": "no"}}
    assert sender.send_events(key, 0, error).status_code == 200
    run = Run.objects.get()
    assert (run.state, run.kind, run.spec["name"]) == ("failed", "command", "tagger")
    return run


@pytest.mark.parametrize(("action", "body"), [("retry", {}), ("clone", {}), ("clone", {"current_batch_size": 4})])
def test_the_api_repeats_it_in_no_way(forged: Run, alice_client: Client, action: str, body: dict[str, Any]):
    answer = alice_client.post(f"/api/v1/runs/{forged.pk}/{action}/", body, "application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "state")
    assert f"it was reported from {HOST}" in answer.json()["detail"]
    assert Run.objects.count() == 1


def test_pages_neither_offer_it_nor_do_it(forged: Run, alice_client: Client):
    assert "Run again" not in alice_client.get(f"/runs/{forged.pk}/").content.decode()
    answer = alice_client.post(f"/runs/{forged.pk}/repeat/", follow=True, headers={"Accept": "text/html"})
    assert f"This run cannot be repeated: run: it was reported from {HOST}" in answer.content.decode()
    assert Run.objects.count() == 1


def test_many_at_once_and_the_admin_panel_do_not_do_it_either(forged: Run, alice, root_client: Client):
    answer = services.runs_retry(run_ids={forged.pk}, by=alice)
    assert (answer.done, answer.not_possible) == (0, 1)
    root_client.post("/admin/analysis/run/", {"action": "retry", "_selected_action": [forged.pk]})
    assert Run.objects.count() == 1


def test_a_run_whose_command_offers_less_by_now_is_not_repeated_with_what_it_had(settings, forged, alice_client):
    start = {"device": "cpu", "current_batch_size": 4}
    assert alice_client.post("/api/v1/commands/tagger/runs/", start, "application/json").status_code == 202
    run = Run.objects.get(state="queued")
    Run.objects.filter(pk=run.pk).update(state="failed", finished_at=run.created_at)
    assert alice_client.post(f"/api/v1/runs/{run.pk}/retry/", {}, "application/json").status_code == 202
    path = settings.COMMANDS_FILE
    path.write_text(path.read_text().replace('"current_batch_size"', ""))
    os.utime(path, ns=(99, 99))
    answer = alice_client.post(f"/api/v1/runs/{run.pk}/retry/", {}, "application/json")
    assert answer.status_code == 400
    assert answer.json()["detail"] == "current_batch_size: cannot be set for tagger any more: start it again without it"
