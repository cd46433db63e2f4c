"""A registered command is tuned by the worker's own engine, and its result is stored and shown like any run's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from django.test import Client

from analysis.models import Run, State
from analysis.runs import services
from analysis.runs.commands import command_spec
from analysis.runs.queue.placement import Placement
from analysis.workers.device_lock import device_lock
from analysis.workers.supervisor import supervise
from tests.factories import make_device

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

SCRIPT = Path(__file__).parents[1] / "engine" / "tune" / "scripts" / "plain.py"


def finished_run(settings, tmp_path: Path, *arguments: str) -> Run:
    parts = [sys.executable, str(SCRIPT), "--batch-size", "{batch_size}", *arguments]
    listed = ", ".join(f'"{part}"' for part in parts)
    return finished_run_of(f"command = [{listed}]", settings, tmp_path)


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


def test_a_registered_function_is_tuned_like_a_command(settings, tmp_path: Path) -> None:
    registered = f'function = "module_with_step:make_step"\ndirectory = "{SCRIPT.parent}"'
    run = finished_run_of(registered, settings, tmp_path)
    assert (run.state, run.error_message, run.largest_batch_size) == (State.FINISHED, "", 24)
    assert run.result["environment"]["script"] == "module_with_step.py"


def test_a_command_that_cannot_be_tuned_fails_with_what_was_seen(settings, tmp_path: Path) -> None:
    run = finished_run(settings, tmp_path, "--ignore")
    assert (run.state, run.error_code) == (State.FAILED, "batch_size_ignored")
    assert "was given 8" in run.error_message
