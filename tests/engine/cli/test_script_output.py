"""What a tuned script prints stays where it ran: a portal gets it with --report-output alone, without secrets."""

import json
import os
import subprocess
import sys
from pathlib import Path
from socket import gethostname
from typing import Any

import pytest

from engine.cli.main import main
from tests.engine.report.loopback_portal import TOKEN, LoopbackPortal

ROOT = Path(__file__).parents[3]
PRINTED = "reading /home/ann/private.csv \\x1b[2J\\x1b]0;title\\x07"
SCRIPT = f'print("{PRINTED}"); print("db password is hunter2-hunter2"); raise SystemExit(1)'
STAYED = f"the command ended with status 1; its output stayed on {gethostname()}"
SHOWN = "its last lines: \n    reading /home/ann/private.csv  [2J ]0;title\n    db password is ***"


RAISING = """
import torch
torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1)
raise ValueError("patient alice has value 42")
"""


def tune(folder: Path, portal: LoopbackPortal, *options: str, script: str = SCRIPT) -> tuple[Any, str]:
    (folder / "train.py").write_text(script)
    own = {"MEMORYMARK_REPORT_TO": portal.url, "MEMORYMARK_TOKEN": TOKEN, "MEMORYMARK_LOCK_DIR": str(folder / "locks")}
    own["XDG_CACHE_HOME"] = str(folder / "cache")
    command = [sys.executable, "-m", "engine", "tune", "--json", "--device", "cpu", *options, "--"]
    command += [sys.executable, "train.py", "{batch_size}"]
    environment = {**os.environ, **own, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_failed_start_shows_its_output_here_and_not_in_the_portal(portal: LoopbackPortal, tmp_path: Path) -> None:
    printed, said = tune(tmp_path, portal)
    assert SHOWN in printed["error"]["message"]
    assert SHOWN in said
    assert "\x1b" not in said
    [events] = portal.events.values()
    assert STAYED in events[-1]["error"]["message"]
    stored = [path.read_text() for path in (tmp_path / "memorymark-runs").iterdir()]
    for text in (json.dumps([*portal.events.values(), *portal.announced.values()]), *stored):
        assert "private.csv" not in text
        assert "hunter2" not in text


def test_with_report_output_the_portal_gets_it_too_without_what_is_secret(portal: Any, tmp_path: Path) -> None:
    tune(tmp_path, portal, "--report-output")
    [events] = portal.events.values()
    assert SHOWN in events[-1]["error"]["message"]


@pytest.mark.slow
def test_the_message_of_a_scripts_error_is_shown_here_and_its_type_alone_in_the_portal(
    portal: LoopbackPortal, tmp_path: Path
) -> None:
    printed, said = tune(tmp_path, portal, script=RAISING)
    for text in (printed["error"]["message"], said):
        assert "ValueError, in the script's own words: patient alice has value 42" in text
    [events] = portal.events.values()
    message = f"ValueError: its output stayed on {gethostname()}"
    assert events[-1]["error"]["message"] == f"the training failed: {message}"
    assert "alice" not in json.dumps([*portal.events.values(), *portal.announced.values()])


def test_sync_cuts_the_output_out_of_a_result_that_was_written_for_this_host(
    portal: LoopbackPortal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = {"batch_size": 9, "outcome": "error", "error_message": "the command ended with status 1; its last lines: x"}
    environment = {"run_key": "a1" * 16, "host": "node7"}
    result = {"spec": {}, "device": {}, "environment": environment, "probes": [probe, probe]}
    local, own = tmp_path / "result.json", tmp_path / f"{'a1' * 16}.json"
    local.write_text(before := json.dumps({"exit_status": 0, "result": result}))
    monkeypatch.setenv("MEMORYMARK_REPORT_TO", portal.url)
    for state in ("sent", "known"):
        monkeypatch.setenv("MEMORYMARK_TOKEN", TOKEN)
        assert main(["sync", str(tmp_path)]) == 0
        assert capsys.readouterr().out.startswith(f"{state}: {local}")
    [sent] = portal.results.values()
    assert {probe["error_message"] for probe in json.loads(sent)["result"]["probes"]} == {
        "the command ended with status 1; its output stayed on node7"
    }
    assert local.read_text() == before, "files are never changed"
    local.rename(own)  # what a reported run wrote to its folder holds no more than was to be sent
    monkeypatch.setenv("MEMORYMARK_TOKEN", TOKEN)
    assert main(["sync", str(tmp_path)]) == 0
    assert own.read_bytes() in portal.results.values()
