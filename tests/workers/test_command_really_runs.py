"""A registered command is tuned by the worker's own engine, and its result is stored and shown like any run's."""

import sys
from pathlib import Path
from socket import gethostname

import pytest
from django.test import Client

from analysis.models import Run, RunLog, State
from analysis.runs import services
from analysis.runs.commands import command_spec
from analysis.runs.queue.placement import Placement
from analysis.workers.device_lock import device_lock
from analysis.workers.supervisor import supervise
from tests.factories import make_device

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

SCRIPT = Path(__file__).parents[1] / "engine" / "trainings" / "script" / "scripts" / "plain.py"


def finished_run(settings, tmp_path: Path, *arguments: str, script: Path = SCRIPT, keys: str = "") -> Run:
    parts = [sys.executable, str(script), "--batch-size", "{batch_size}", *arguments]
    listed = ", ".join(f'"{part}"' for part in parts)
    return finished_run_of(f"command = [{listed}]\n{keys}", settings, tmp_path)


def finished_run_of(registered: str, settings, tmp_path: Path) -> Run:
    settings.COMMANDS_FILE = tmp_path / "commands.toml"
    settings.COMMANDS_FILE.write_text(f'[[command]]\nname = "tagger"\n{registered}\n')
    given = {"max_batch_size": 24, "current_batch_size": 24}
    run = services.run_create(spec=command_spec("tagger", given), place=Placement(device=make_device()))
    claimed = services.run_claim(device=run.requested_device, owner="worker", run_id=run.pk)
    assert claimed is not None
    with device_lock(claimed.device) as descriptor:
        supervise(claimed, keep_open=[descriptor])
    claimed.refresh_from_db()
    return claimed


def test_a_registered_command_is_tuned_stored_and_shown(settings, tmp_path: Path, alice_client: Client) -> None:
    run = finished_run(settings, tmp_path)
    assert (run.state, run.error_message) == (State.FINISHED, "")
    assert (run.largest_batch_size, run.boundary_reason) == (24, "max_batch_size")
    assert run.result["training"]["ranks"] == 1
    text = alice_client.get(run.get_absolute_url()).content.decode()
    assert "tagger" in text
    assert "At least 24 fit. None is recommended." in text
    assert "No larger size than your 24 keeps the reserve" in text
    assert "Batches of a step" in text
    assert "Time again" not in text
    for address in ("/", "/runs/", f"/compare/?ids={run.pk}", "/trend/", "/matrix/", f"/api/v1/runs/{run.pk}/"):
        assert alice_client.get(address).status_code == 200, address


def test_a_registered_command_changes_no_file_of_its_folder(settings, tmp_path: Path, alice_client: Client) -> None:
    folder = tmp_path / "train"
    folder.mkdir()
    (folder / "model.pt").write_text("of a finished training")
    (folder / "train.py").write_text(f"import os\nos.remove('model.pt')\n{SCRIPT.with_name('plain.py').read_text()}")
    command = f'["{sys.executable}", "train.py", "--batch-size", "{{batch_size}}"]'
    run = finished_run_of(f'command = {command}\ndirectory = "{folder}"', settings, tmp_path)
    assert (run.state, run.error_message) == (State.FINISHED, "")
    assert run.result["training"]["protection"] in ("layers", "saving")
    assert (folder / "model.pt").read_text() == "of a finished training"
    assert "Your files" in alice_client.get(run.get_absolute_url()).content.decode()


def test_a_registered_function_is_tuned_like_a_command(settings, tmp_path: Path) -> None:
    registered = f'function = "module_with_step:make_step"\ndirectory = "{SCRIPT.parent}"'
    run = finished_run_of(registered, settings, tmp_path)
    assert (run.state, run.error_message, run.largest_batch_size) == (State.FINISHED, "", 24)
    assert run.result["environment"]["script"] == "module_with_step.py"


def test_a_command_that_cannot_be_tuned_fails_with_what_was_seen(settings, tmp_path: Path) -> None:
    run = finished_run(settings, tmp_path, "--ignore")
    assert (run.state, run.error_code) == (State.FAILED, "batch_size_ignored")
    assert "was given 8" in run.error_message


FAILING = """
import torch
print("reading /home/ann/private.csv", flush=True)
torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1)
raise ValueError("patient alice has value 42")
"""


@pytest.mark.parametrize("is_stored", [False, True])
def test_what_a_failing_script_said_is_stored_only_where_its_administrator_lets_it(
    is_stored: bool, settings, tmp_path: Path, alice_client: Client
) -> None:
    (tmp_path / "train.py").write_text(FAILING)
    keys = "report_output = true" if is_stored else ""
    run = finished_run(settings, tmp_path, script=tmp_path / "train.py", keys=keys)
    assert (run.state, run.error_code) == (State.FAILED, "workload_failed")
    log = "\n".join(line.message for line in RunLog.objects.of(run))
    page = alice_client.get(run.get_absolute_url()).content.decode()
    api = alice_client.get(f"/api/v1/runs/{run.pk}/").content.decode()
    [attempt] = run.attempts.all()
    for text in (run.error_message, attempt.message, log, page, api):
        assert "ValueError" in text
        assert ("alice has value" in text) is is_stored
        assert ("private.csv" in text) is is_stored
    assert f"its output stayed on {gethostname()}" in run.error_message or is_stored
    assert "\n  Its whole output: /" in run.error_message
    assert f"{tmp_path}/train.py --batch-size 24" in run.error_message.partition("To run it by hand: ")[2]
