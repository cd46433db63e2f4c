"""No secret of a command line is stored or shown, whoever sent it and however old the run is."""

import json
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from analysis.models import Run
from engine.text.masking import NAMES_VARIABLE
from tests.factories.reports import SendingClient, make_function_document, make_run_key

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
